"""Sheets, tables and claims as text, one module a format; none of them computes.

A new format is its name here and a module of that name beside this one. The module has two functions, which return the
parts of what they write, each text or something that rich prints: `write_tables` of tables and the options that made
them, `write_claims` of papers with their verdicts and the options of the commands that would test further claims; CSV
has no claims.
A page of HTML, which has learning curves and runs as well, is written by `kdx.report.writers.html.page`.
"""

from enum import StrEnum
from importlib import import_module
from types import ModuleType


class Format(StrEnum):
    """The formats of tables and claims."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    HTML = "html"


def writer(format: Format) -> ModuleType:
    """The module of a format. Every command has the names of the formats, so it is imported only when it is needed."""
    return import_module(f"kdx.report.writers.{format}")
