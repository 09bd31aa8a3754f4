"""A table on the terminal, ruled like one in a paper: one line a row, no meaning by colour alone."""

from collections.abc import Iterable, Iterator, Sequence

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.table import Table as RichTable
from rich.text import Text

from kdx.report.render.columns import Piece, are_words, column, fit, fold, of_listing
from kdx.report.render.listings.listing import Listing
from kdx.report.render.listings.table import listings
from kdx.report.render.over_length import over_length
from kdx.report.render.text_figure import TextFigure
from kdx.report.render.wording import (
    CellText,
    beside_scores,
    caption,
    column_headers,
    means,
    sign,
    unless_repeated,
    words,
)
from kdx.report.table.comparisons import Mark
from kdx.report.table.table import Table
from kdx.sanitize import sanitize

_RULE = "─"
_BOX = Box(f"    \n    \n {_RULE}{_RULE} \n    \n    \n    \n    \n    \n")
_GAP = 2
"""Blanks between columns; a column of scores has one more before it."""
_NOTES = 80
"""Smallest width of the notes, where the console has room; they are else as wide as the table."""


class TextTable:
    """A table that rich prints; where the console is too narrow it continues below, with its row names repeated."""

    def __init__(self, table: Table, *, statistics: bool = False, full: bool = False) -> None:
        self.table = table
        self.full = full
        self.statistics = statistics
        self._names = [[sanitize(word) for word in row] for row in table.layout.rows]
        self._factors = [sanitize(factor) for factor in table.layout.row_factors]
        self._headers = [tuple(map(sanitize, header)) for header in column_headers(table.layout)]
        self._columns = [_column(table, index) for index in range(len(table.layout.columns))]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The title, the body in as many pieces as the width needs, the notes, and scores against a length."""
        title = Text(sanitize(self.table.layout.name), style="bold")
        if self.table.layout.caption:
            title.append(f": {sanitize(self.table.layout.caption)}", style="not bold")
        yield title
        widest = _NOTES
        for piece in self._pieces(options.max_width):
            widest = max(widest, _total(piece))
            yield from _ruled(self._grid(piece), piece)
        yield from _notes(caption(self.table, best="* and bold", full=self.full), widest)
        for metric, series in over_length(self.table).items():
            yield Text("")
            yield TextFigure(self.table.layout.name, metric, series)
        for listing in listings(self.table, statistics=self.statistics):
            yield Text("")
            yield TextListing(listing)

    def _pieces(self, width: int) -> list[Piece]:
        names = [
            column([factor, *(row[level] for row in self._names)], (), cell_len)
            for level, factor in enumerate(self._factors)
        ]
        columns = [
            column(header, (text.plain for text in texts), _behind_blank)
            for header, texts in zip(self._headers, self._columns, strict=True)
        ]
        return fit([*names, *columns], len(names), width, _GAP)

    def _grid(self, piece: Piece) -> RichTable:
        headers = [unless_repeated(self._headers, index, piece.columns.start) for index in piece.columns]
        names, scores = piece.widths[: len(self._factors)], piece.widths[len(self._factors) :]
        folded = [
            [fold(word, width, _behind_blank) for word in header] for header, width in zip(headers, scores, strict=True)
        ]
        # Each level of the headers has as many lines as its most folded word.
        depths = [max(map(len, level)) for level in zip(*folded, strict=True)]
        grid = _empty_grid()
        factors = [fold(factor, width, cell_len) for factor, width in zip(self._factors, names, strict=True)]
        deepest = max([sum(depths), *map(len, factors)])
        for lines, width in zip(factors, names, strict=True):
            grid.add_column(_text(["" for _ in range(deepest - len(lines))] + lines), width=int(width))
        for levels, width in zip(folded, scores, strict=True):
            lines = [line for level, depth in zip(levels, depths, strict=True) for line in _deep(level, depth)]
            grid.add_column(_text([""] * (deepest - len(lines)) + [f" {line}" for line in lines]), width=int(width))
        for row in range(len(self._names)):
            its = zip(unless_repeated(self._names, row), names, strict=True)
            grid.add_row(
                *(_text(fold(name, width, cell_len)) for name, width in its),
                *(Text(" ") + self._columns[index][row] for index in piece.columns),
            )
        return grid


class TextListing:
    """A listing that rich prints, ruled like a table; it continues below where the console is too narrow."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The title, the rows and the notes."""
        listing = self.listing
        rows = [[sanitize(word) for word in row] for row in listing.rows]
        headers = [sanitize(header) for header in listing.headers]
        texts = [[row[index] for row in rows] for index in range(len(headers))]
        columns = [
            of_listing(header, its, cell_len, names=index < listing.names)
            for index, (header, its) in enumerate(zip(headers, texts, strict=True))
        ]
        numbers = [index >= listing.names and not are_words(its) for index, its in enumerate(texts)]
        yield Text(sanitize(listing.title), style="bold")
        widest = _NOTES
        for piece in fit(columns, listing.names, options.max_width, _GAP) if rows else []:
            widest = max(widest, _total(piece))
            shown = [*range(listing.names), *(index + listing.names for index in piece.columns)]
            folded = [fold(headers[index], width, cell_len) for index, width in zip(shown, piece.widths, strict=True)]
            deepest = max(map(len, folded))
            grid = _empty_grid()
            for index, width, lines in zip(shown, piece.widths, folded, strict=True):
                header = _text([""] * (deepest - len(lines)) + lines)
                grid.add_column(header, width=int(width), justify="right" if numbers[index] else "left")
            for row in rows:
                its = zip(shown, piece.widths, strict=True)
                grid.add_row(*(_text(fold(row[index], width, cell_len)) for index, width in its))
            yield from _ruled(grid, piece)
        yield from _notes(listing.notes, widest)


def _empty_grid() -> RichTable:
    return RichTable(box=_BOX, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="")


def _ruled(grid: RichTable, piece: Piece) -> tuple[Text, RichTable, Text]:
    rule = _RULE * _total(piece)
    return Text(rule, overflow="crop", no_wrap=True), grid, Text(rule, overflow="crop", no_wrap=True)


def _total(piece: Piece) -> int:
    return sum(map(int, piece.widths)) + _GAP * (len(piece.widths) - 1)


def _notes(notes: Iterable[str], width: int) -> Iterator[Constrain]:
    return (Constrain(Text(sanitize(note)), width) for note in notes)


def _behind_blank(text: str) -> int:
    return 1 + cell_len(text)


def _deep(lines: Sequence[str], depth: int) -> list[str]:
    return [*lines, *[""] * (depth - len(lines))]


def _text(lines: Iterable[str]) -> Text:
    return Text("\n".join(lines), overflow="fold")


def _column(table: Table, index: int) -> list[Text]:
    """One column's texts, its numbers aligned."""
    cells = table.layout.column(index)
    marks = [table.marks.get((row, index)) for row in range(len(cells))]
    parts = [words(cell, show_n=table.layout.n is None) for cell in cells]
    width = max((len(part.score) for part in parts if part.aligned), default=0)
    blank = " " if any(marks) else ""

    def text(part: CellText, mark: Mark | None, mean: str, beside: str) -> Text:
        if not part.aligned:
            return Text("  ".join(filter(None, (part.score, beside))))
        signs = "*" if mark is Mark.BEST else sign(mark) or blank
        style = "bold" if mark is Mark.BEST else ""
        line = Text(part.score.rjust(width))
        if part.marks_mean:
            line.append("  ").append(f"{mean}{signs}", style)
        else:
            line.append(signs).append(f" {mean} " if mean else "")
            line.stylize(style)
        line.append(f" {beside}")
        line.rstrip()
        return line

    return [text(*place) for place in zip(parts, marks, means(parts), beside_scores(parts), strict=True)]
