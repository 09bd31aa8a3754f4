"""Numbers in prose that say where they come from: `30.4 <!-- kdx trace table1 "Eq. 9" translation # mean -->`.

The comment stands behind the number, in LaTeX `30.4% kdx trace …` at the end of its line, and is the command that
traces it. Behind a # stands which figure of the cell it is; without one it is the score that the table shows.
"""

import re
import shlex
from argparse import ArgumentError, ArgumentParser
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from kdx.errors import KdxError, in_a_line
from kdx.report.check.comparison import Change, Comparison, Kind
from kdx.report.check.documents import Document
from kdx.report.made_by import MadeBy
from kdx.report.selection.cells import Cell
from kdx.report.table.layout import Layout
from kdx.report.trace import columns, find, rows

_COMMENT = {
    "latex": re.compile(r"(?<!\\)%[ \t]*(kdx[ \t]+trace\b.*)"),
    "markdown": re.compile(r"<!--\s*(kdx\s+trace\b.*?)\s*-->", re.DOTALL),
}
_NUMBER = re.compile(r"([-+−]?\d(?:[\d,]*\d)?(?:\.\d+)?)[^\w\n]*$")
"""A number, and nothing but signs up to the comment. What is written apart belongs to no number."""

_TRACE = ArgumentParser(add_help=False, exit_on_error=False)
_TRACE.add_argument("names", nargs="*")
_TRACE.add_argument("--sweep", action="append", default=[])
_TRACE.add_argument("--tables")
# What kdx trace prints may be pasted; these decide about no number.
_TRACE.add_argument("--full", action="store_true")
for _name in ("--db", "--files"):
    _TRACE.add_argument(_name)


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
    made_by: MadeBy
    name: str
    """The name of the table."""
    row: str
    column: str | None
    figure: Figure

    @property
    def place(self) -> str:
        return self.document.shown(self.at)


def find_quoted(files: Sequence[Document]) -> tuple[list[Quoted], list[tuple[Document, str]]]:
    """The numbers of some files that say where they come from; and the comments that say it of nothing, with why."""
    quoted: list[Quoted] = []
    unread: list[tuple[Document, str]] = []
    for document in files:
        comments = _COMMENT.get(document.format)
        last = 0
        for comment in comments.finditer(document.text) if comments else ():
            line = document.text.rfind("\n", 0, comment.start()) + 1
            number = _NUMBER.search(document.text[max(line, last) : comment.start()])
            at = max(line, last) + number.start() if number else comment.start()
            last = comment.end()
            try:
                quoted.append(_read(document, at, number and number[1], " ".join(comment[1].split())))
            except KdxError as fault:
                unread.append((document, f"{document.shown(at)}: {in_a_line(fault)}"))
    return quoted, unread


def _read(document: Document, at: int, number: str | None, command: str) -> Quoted:
    """Raises KdxError unless the comment says which place of a table the number is of."""
    if number is None:
        raise KdxError(f"`{command}` has no number directly before it", hint="put it directly behind its number")
    place, _, figure = command.partition(" # ")
    try:
        options, unknown = _TRACE.parse_known_intermixed_args(shlex.split(place)[2:])
        if unknown:
            raise ValueError(unknown)
        table, row = options.names[:2]
        (column,) = options.names[2:] or (None,)
    except (ValueError, ArgumentError) as error:
        allowed = "kdx trace TABLE ROW [COLUMN] [--sweep SWEEP] [--tables FILE] [# FIGURE]"
        raise KdxError(f"`{command}` names no place of a table", allowed=allowed) from error
    which = figure.strip() or Figure.SCORE
    if which not in [*Figure]:
        raise KdxError(f"`{command}`: there is no figure `{which}`", allowed=[*Figure])
    made_by = MadeBy(tuple(options.sweep), tables=options.tables)
    return Quoted(document, at, number, made_by, table, row, column, Figure(which))


def compare_quoted(quoted: Quoted, layout: Layout) -> Comparison:
    """Compare a number with the table.

    Raises:
        KdxError: the table has no such row or column.
    """
    at = find(layout, quoted.row, quoted.column)
    now = _now(layout.places[at], quoted.figure)
    decimals = len(quoted.number.partition(".")[2])
    shown = "–" if now is None else f"{now:.{decimals}f}"
    if shown == quoted.number.replace(",", "").replace("−", "-").lstrip("+"):
        return Comparison(1)
    path, place = str(quoted.document.path), quoted.document.place(quoted.at)
    header = f"{rows(layout)[at[0]]}, {columns(layout)[at[1]]}"
    change = Change(quoted.name, path, *place, header, Kind.ROWS, quoted.figure.value, quoted.number, shown)
    return Comparison(1, (change,))


def _now(cell: Cell, figure: Figure) -> float | None:
    match figure:
        case Figure.SCORE:
            return cell.value
        case Figure.N:
            return len(cell.scores)
    number: float | None = getattr(cell.summary, figure.value, None)
    return number
