"""The version of kdx."""

VERSION = "0.1.0"
