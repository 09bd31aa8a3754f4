"""Numbers in prose that say where they come from: `30.4 <!-- kdx trace table1 "Eq. 9" translation # mean -->`.

The comment stands behind the number, in LaTeX `30.4% kdx trace …` at the end of its line, and is the command that
traces it. Behind a # stands which figure of the cell it is; without one it is the score that the table shows.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from kdx.report.check import Change, Document, Kind
from kdx.report.selection.cells import Cell
from kdx.report.table.layout import Layout
from kdx.report.trace import find

_NUMBER = r"(?P<number>[-+−]?\d(?:[\d,]*\d)?(?:\.\d+)?)"
_COMMENTS = {
    ".tex": re.compile(rf"{_NUMBER}[^\w\n%]*%[ \t]*(?P<command>kdx trace .*)"),
    ".md": re.compile(rf"{_NUMBER}[^\w\n<]*<!--\s*(?P<command>kdx trace .*?)\s*-->"),
}
"""A number, nothing but signs behind it, and the comment. What is written apart belongs to no number."""


class Figure(StrEnum):
    """What of a cell a number is."""

    SCORE = "score"
    MEAN = "mean"
    SD = "sd"
    N = "n"


class Quoted(NamedTuple):
    """A number in prose, and the place of a table that it is of."""

    document: Document
    at: int
    number: str
    sweeps: tuple[str, ...]
    table: str
    row: str
    column: str | None
    figure: Figure

    @property
    def place(self) -> str:
        line, column = self.document.place(self.at)
        return f"{self.document.path}:{line}:{column}"


def find_quoted(files: Sequence[Document]) -> tuple[list[Quoted], list[str]]:
    """The numbers of some files that say where they come from; and the places of comments that cannot be read."""
    quoted, unread = [], []
    for document in files:
        comments = _COMMENTS.get(document.path.suffix.lower())
        for comment in comments.finditer(document.text) if comments else ():
            read = _read(document, comment)
            if read:
                quoted.append(read)
            else:
                line, column = document.place(comment.start())
                unread.append(f"{document.path}:{line}:{column}: `{comment['command']}` names no place of a table")
    return quoted, unread


def _read(document: Document, comment: re.Match[str]) -> Quoted | None:
    command, _, figure = comment["command"].partition(" # ")
    sweeps: list[str] = []
    names: list[str] = []
    try:
        words = iter(shlex.split(command)[2:])
        for word in words:
            (sweeps if word == "--sweep" else names).append(next(words, "") if word == "--sweep" else word)
        table, row = names[:2]
        (column,) = names[2:] or (None,)
        which = Figure(figure.strip() or Figure.SCORE)
    except ValueError:
        return None
    return Quoted(document, comment.start(), comment["number"], tuple(sweeps), table, row, column, which)


def differences(quoted: Quoted, layout: Layout) -> Iterator[Change]:
    """Yield the difference between a number and the table, if there is one.

    Raises:
        KdxError: the table has no such row or column.
    """
    now = _now(layout.places[find(layout, quoted.row, quoted.column)], quoted.figure)
    decimals = len(quoted.number.partition(".")[2])
    shown = "–" if now is None else f"{now:.{decimals}f}"
    if shown != quoted.number.replace(",", "").replace("−", "-").lstrip("+"):
        line, column = quoted.document.place(quoted.at)
        path = str(quoted.document.path)
        yield Change(quoted.table, path, line, column, Kind.ROWS, quoted.figure.value, quoted.number, shown)


def _now(cell: Cell, figure: Figure) -> float | None:
    match figure:
        case Figure.SCORE:
            return cell.value
        case Figure.N:
            return len(cell.scores)
    number: float | None = getattr(cell.summary, figure.value, None)
    return number
