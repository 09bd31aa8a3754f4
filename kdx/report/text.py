"""A table on the terminal, ruled like one in a paper: one line a row, no meaning by colour alone."""

from collections.abc import Iterator

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.table import Table as RichTable
from rich.text import Text

from kdx.report.cells import Cell
from kdx.report.inert import inert
from kdx.report.listings import Listing, listings
from kdx.report.table import Table
from kdx.report.wording import Words, beside_scores, caption, column_headers, mark, unless_repeated, words

_RULE = "─"
_BOX = Box(f"    \n    \n {_RULE}{_RULE} \n    \n    \n    \n    \n    \n")
_GAP = 2
"""Blanks after a row's name; a column of scores has one more before it."""
_NAME = 20
"""A row's name is folded onto several lines rather than cut, but not below this width (in columns of the terminal)."""
_CAPTION = 80
"""The caption is as wide as the table, but at least this, where the console has room."""


class TextTable:
    """What rich prints; a table wider than the console goes on below, with its row names repeated."""

    def __init__(self, table: Table, *, statistics: bool = False, full: bool = False) -> None:
        self.table = table
        self.full = full
        self.statistics = statistics
        self._names = [[inert(word) for word in row] for row in table.rows]
        self._factors = [inert(factor) for factor in table.row_factors]
        self._headers = [tuple(map(inert, header)) for header in column_headers(table)]
        self._columns = [_column(table, index) for index in range(len(table.columns))]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The title, the body in as many pieces as the width needs, and the caption."""
        title = Text(inert(self.table.name), style="bold")
        if self.table.caption:
            title.append(f": {inert(self.table.caption)}", style="not bold")
        yield title
        widest = _CAPTION
        for first, last in self._pieces(options.max_width):
            piece = self._piece(first, last)
            width = min(console.measure(piece, options=options).maximum, options.max_width)
            widest = max(widest, width)
            yield from (Text(_RULE * width), piece, Text(_RULE * width))
        said = caption(self.table, best="* and bold", full=self.full)
        yield from (Constrain(Text(inert(paragraph)), widest) for paragraph in said)
        for listing in listings(self.table, statistics=self.statistics):
            yield Text("")
            yield TextListing(listing)

    def _pieces(self, width: int) -> Iterator[tuple[int, int]]:
        """Ranges of columns that fit beside the row names; one column at least."""
        left = sum(min(self._name_width(level), _NAME) + _GAP for level in range(len(self._factors)))
        first, used = 0, left
        for index in range(len(self._columns)):
            wide = 1 + max(map(cell_len, (*self._headers[index], *(text.plain for text in self._columns[index]))))
            if index > first and used + wide > width:
                yield first, index
                first, used = index, left
            used += wide + _GAP
        if self._columns:
            yield first, len(self._columns)

    def _piece(self, first: int, last: int) -> RichTable:
        grid = RichTable(box=_BOX, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="")
        above = "\n" * max((len(header) - 1 for header in self._headers), default=0)
        for level, factor in enumerate(self._factors):
            grid.add_column(Text(above + factor), overflow="fold", min_width=min(self._name_width(level), _NAME))
        for index in range(first, last):
            header = "\n".join(f" {word}" for word in unless_repeated(self._headers, index, first))
            grid.add_column(Text(header), overflow="fold")
        for row in range(len(self._names)):
            names = unless_repeated(self._names, row)
            grid.add_row(*map(Text, names), *(Text(" ") + self._columns[index][row] for index in range(first, last)))
        return grid

    def _name_width(self, level: int) -> int:
        return max(map(cell_len, (self._factors[level], *(row[level] for row in self._names))))


class TextListing:
    """What rich prints of a listing, ruled like a table; words are folded rather than cut."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The title, the rows and the notes."""
        listing = self.listing
        grid = RichTable(box=_BOX, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="")
        for index, header in enumerate(listing.headers):
            numbers = index >= listing.names
            grid.add_column(Text(inert(header)), overflow="fold", justify="right" if numbers else "left")
        for row in listing.rows:
            grid.add_row(*(Text(inert(word)) for word in row))
        yield Text(inert(listing.title), style="bold")
        width = min(console.measure(grid, options=options).maximum, options.max_width)
        if listing.rows:
            yield from (Text(_RULE * width), grid, Text(_RULE * width))
        yield from (Constrain(Text(inert(note)), max(width, _CAPTION)) for note in listing.notes)


def _column(table: Table, index: int) -> list[Text]:
    """One column's texts, its numbers aligned."""
    cells = [row[index] for row in table.body]
    parts = [words(cell, show_n=table.n is None) for cell in cells]
    width = max((len(part.score) for part in parts if part.aligned), default=0)

    def text(part: Words, cell: Cell | None, beside: str) -> Text:
        if not part.aligned:
            return Text("  ".join(filter(None, (part.score, beside))))
        line = Text(part.score.rjust(width) + ("*" if cell and cell.best else mark(cell) or " "))
        if cell and cell.best:
            line.stylize("bold")
        line.append(f" {beside}", style="not bold")
        line.rstrip()
        return line

    return [text(*place) for place in zip(parts, cells, beside_scores(parts), strict=True)]
