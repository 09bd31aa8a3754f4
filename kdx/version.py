"""Which kdx this is."""

VERSION = "0.1.0"
