"""A sheet on the terminal, ruled like a table in a paper: one line a row, no meaning by colour alone."""

from collections.abc import Iterable, Iterator, Sequence

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.table import Table as RichTable
from rich.text import Text

from kdx.report.figures.series import over_length
from kdx.report.figures.text import TextBands
from kdx.report.fit import Column, Piece, are_words, column, fit, fold, of_listing
from kdx.report.sheet import Score, Sheet, beside_scores, means, unless_repeated
from kdx.report.sheets.listings import listings
from kdx.report.sheets.scores import scores
from kdx.report.table.table import Table
from kdx.sanitize import sanitize

_RULE = "─"
_BOX = Box(f"    \n    \n {_RULE}{_RULE} \n    \n    \n    \n    \n    \n")
_GAP = 2
"""Blanks between columns; a column of scores has one more before it."""
_NOTES = 80
"""Smallest width of the notes, where the console has room; they are else as wide as the table."""


class TextTable:
    """A table that rich prints, with its listings and its scores against a length."""

    def __init__(self, table: Table, *, statistics: bool = False, full: bool = False) -> None:
        self.table = table
        self.scores = scores(table, full=full, best="* and bold")
        self.listings = listings(table, statistics=statistics)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield TextSheet(self.scores)
        for metric, series in over_length(self.table).items():
            yield Text("")
            yield TextBands(self.table.layout.name, metric, series)
        for listing in self.listings:
            yield Text("")
            yield TextSheet(listing)


class TextSheet:
    """A sheet that rich prints; where the console is too narrow it continues below, with its row names repeated."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._headers = [tuple(map(sanitize, sheet.levels(at))) for at in range(len(sheet.headers))]
        self._texts = [
            _aligned(sheet.scores(at)) if self._has_scores(at) else [Text(sanitize(text)) for text in sheet.texts(at)]
            for at in range(len(sheet.headers))
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The title, the body in as many pieces as the width needs, and the notes."""
        title = Text(sanitize(self.sheet.title), style="bold")
        if self.sheet.caption:
            title.append(f": {sanitize(self.sheet.caption)}", style="not bold")
        yield title
        widest = _NOTES
        columns = [self._column(at) for at in range(len(self._headers))]
        for piece in (
            fit(columns, self.sheet.names, options.max_width, _GAP) if self.sheet.rows or self.sheet.of_scores else []
        ):
            total = sum(map(int, piece.widths)) + _GAP * (len(piece.widths) - 1)
            widest = max(widest, total)
            rule = Text(_RULE * total, overflow="crop", no_wrap=True)
            yield from (rule, self._grid(piece), rule)
        yield from (Constrain(Text(sanitize(note)), widest) for note in self.sheet.notes)

    def _has_scores(self, at: int) -> bool:
        return self.sheet.of_scores and at >= self.sheet.names

    def _column(self, at: int) -> Column:
        texts = [text.plain for text in self._texts[at]]
        if self._has_scores(at):
            return column(self._headers[at], texts, _behind_blank)
        return of_listing(self._headers[at][-1], texts, cell_len, names=at < self.sheet.names)

    def _grid(self, piece: Piece) -> RichTable:
        names = self.sheet.names
        shown = [*range(names), *(names + index for index in piece.columns)]
        grid = RichTable(box=_BOX, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="")
        for at, width, header in zip(shown, piece.widths, self._folded_headers(piece), strict=True):
            texts = [text.plain for text in self._texts[at]]
            is_number = at >= names and not self._has_scores(at) and not are_words(texts)
            grid.add_column(_text(header), width=int(width), justify="right" if is_number else "left")
        for index in range(len(self.sheet.rows)):
            row: list[Text] = []
            row_names = self.sheet.row_names(index)
            for at, width in zip(shown, piece.widths, strict=True):
                if self._has_scores(at):
                    row.append(Text(" ") + self._texts[at][index])
                else:
                    text = sanitize(row_names[at]) if at < names else self._texts[at][index].plain
                    row.append(_text(fold(text, width, cell_len)))
            grid.add_row(*row)
        return grid

    def _folded_headers(self, piece: Piece) -> Iterator[list[str]]:
        """The lines of each column's header; each level has as many lines as its most folded word."""
        names = self.sheet.names
        headers = [self._headers[names:][index] for index in piece.columns]
        levels = [
            *([*([""] * (len(headers[0]) - 1) if headers else []), self._headers[at][-1]] for at in range(names)),
            *(unless_repeated(headers, index) for index in range(len(headers))),
        ]
        measure, blank = (_behind_blank, " ") if self.sheet.of_scores else (cell_len, "")
        folded = [
            [fold(word, width, cell_len if at < names else measure) for word in header]
            for at, (header, width) in enumerate(zip(levels, piece.widths, strict=True))
        ]
        depths = [max(map(len, level)) for level in zip(*folded, strict=True)]
        for at, header in enumerate(folded):
            lines = [line for level, depth in zip(header, depths, strict=True) for line in _deep(level, depth)]
            yield lines if at < names else [f"{blank}{line}".rstrip() for line in lines]


def _behind_blank(text: str) -> int:
    return 1 + cell_len(text)


def _deep(lines: Sequence[str], depth: int) -> list[str]:
    return [*[""] * (depth - len(lines)), *lines]


def _text(lines: Iterable[str]) -> Text:
    return Text("\n".join(lines), overflow="fold")


def _aligned(column: Sequence[Score]) -> list[Text]:
    """One column's texts, its numbers aligned."""
    width = max((len(score.score) for score in column if score.aligned), default=0)
    blank = " " if any(score.mark for score in column) else ""

    def text(score: Score, mean: str, beside: str) -> Text:
        if not score.aligned:
            return Text("  ".join(filter(None, (score.score, beside))))
        signs = "*" if score.best else score.sign or blank
        style = "bold" if score.best else ""
        line = Text(score.score.rjust(width))
        if score.marks_mean:
            line.append("  ").append(f"{mean}{signs}", style)
        else:
            line.append(signs).append(f" {mean} " if mean else "")
            line.stylize(style)
        line.append(f" {beside}")
        line.rstrip()
        return line

    return [text(*place) for place in zip(column, means(column), beside_scores(column), strict=True)]
