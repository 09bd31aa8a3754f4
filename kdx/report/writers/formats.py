"""The formats of tables and claims.

A new one is its name here, and a module of that name beside this one with the two functions of `Writer`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

# Every command has the names of the formats among its options, and few write tables.
if TYPE_CHECKING:
    from kdx.report.made_by import MadeBy
    from kdx.report.papers.paper_file import Paper
    from kdx.report.papers.verdicts import Answer
    from kdx.report.table.table import Table


class Format(StrEnum):
    """The formats of tables and claims."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    HTML = "html"


class Writer(Protocol):
    """The module of a format that is written from tables or claims alone; a page of HTML has curves and runs as well.

    Each part that is returned is text, or something that rich prints.
    """

    def write_tables(self, tables: "Sequence[Table]", made_by: "MadeBy") -> Iterable[Any]:
        """Write tables with all that belongs to them.

        Args:
            made_by: the options that decide what they show, and the command that makes them again.
        """

    def write_claims(self, papers: "Sequence[tuple[Paper, Sequence[Answer]]]", options: str) -> Iterable[Any]:
        """Write the verdicts on the claims of papers.

        Args:
            options: of the commands that would test further claims, such as ` --db FILE`.
        """


def writer(format: Format) -> Writer:
    """The module of a format other than HTML; it is imported only now."""
    return cast(Writer, import_module(f"kdx.report.writers.{format}"))
