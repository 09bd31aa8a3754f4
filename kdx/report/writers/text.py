"""A sheet on the terminal, ruled like a table in a paper: one line a row, no meaning by colour alone."""

import re
from collections.abc import Iterator, Sequence

from rich.box import Box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.table import Table as RichTable
from rich.text import Text

from kdx.report.figures.series import over_length
from kdx.report.figures.text import TextPlot
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import Paper
from kdx.report.papers.verdicts import Answer
from kdx.report.sheet import STARTS_NUMBER, Score, Sheet, lined_up, unless_repeated
from kdx.report.sheets.claims import of_papers
from kdx.report.sheets.listings import sheets_of
from kdx.report.tables import Table
from kdx.report.writers.styles import styled
from kdx.report.writers.widths import GAP, LINES, Widths, cells, divided
from kdx.sanitize import sanitize

_RULE = "─"
_BOX = Box(f"    \n    \n    \n    \n {_RULE}{_RULE} \n    \n    \n    \n")
_NOTES = 80
"""Smallest width of the notes, where the console has room; they are else as wide as the table."""
_WORD = re.compile(r"^ ?\S+(?: [↑↓])?|\S+(?: [↑↓])?")


def write_tables(tables: Sequence[Table], made_by: MadeBy) -> Iterator[Group | str]:
    """Write tables; see `kdx.report.writers`."""
    for table in tables:
        yield text_table(table, statistics=made_by.statistics, notes=made_by.notes)
        yield ""


def write_claims(papers: Sequence[tuple[Paper, Sequence[Answer]]], options: str) -> Iterator["TextSheet | Text | str"]:
    """Write verdicts on claims; see `kdx.report.writers`."""
    for heading, sheets in of_papers(papers, options):
        yield Text(sanitize(heading))
        yield from [""] if sheets else []
        for sheet in sheets:
            yield TextSheet(sheet)
            yield ""


def text_table(table: Table, *, statistics: bool = False, notes: str = "short") -> Group:
    """A table that rich prints, with its listings and its scores against a length."""
    scores, *listings = sheets_of(table, statistics=statistics, notes=notes, best="* and bold")
    below: list[RenderableType] = [*map(TextPlot, over_length(table)), *map(TextSheet, listings)]
    return Group(TextSheet(scores), *(part for each in below for part in (Text(""), each)))


class TextSheet:
    """A sheet that rich prints; where the console is too narrow it continues below, with its row names repeated."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the title, the body in as many pieces as the width needs, and the notes."""
        title = styled(sanitize(self.sheet.title))
        title.stylize_before("bold")
        if self.sheet.caption:
            title.append(f": {sanitize(self.sheet.caption)}")
        yield title
        widest = _NOTES
        has_body = self.sheet.rows or self.sheet.of_scores
        for piece in fit(self.sheet, options.max_width) if has_body else []:
            total = sum(piece.values()) + GAP * (len(piece) - 1)
            widest = max(widest, total)
            rule = Text(_RULE * total, overflow="crop", no_wrap=True)
            yield from (rule, self._grid(piece), rule)
        yield from (Constrain(Text(sanitize(note)), widest) for note in self.sheet.notes)

    def _grid(self, piece: dict[int, int]) -> RichTable:
        names = self.sheet.names
        grid = RichTable(box=_BOX, show_header=False, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
        columns = []
        for at, width in piece.items():
            is_score = self.sheet.of_scores and at >= names
            is_number = not is_score and not self.sheet.is_of_words(at)
            grid.add_column(width=width, justify="right" if is_number else "left", overflow="fold")
            columns.append(_aligned(self.sheet.scores(at)) if is_score else [*map(_text, self.sheet.texts(at))])
        blank = " " * self.sheet.of_scores
        headers = [self.sheet.levels(at) for at in [*piece][names:]]
        shown = unless_repeated(headers)
        levels = max(map(len, headers), default=1)
        for level in range(levels):
            innermost = level == levels - 1
            row_header = [self.sheet.headers[at] if innermost else "" for at in range(names)]
            grid.add_row(*map(_text, row_header), *(Text(blank) + _text(header[level]) for header in shown))
        grid.add_section()
        for index, row_names in enumerate(self.sheet.row_names()):
            grid.add_row(*map(_text, row_names), *(Text(blank) + column[index] for column in columns[names:]))
        return grid


def _text(text: str) -> Text:
    return styled(sanitize(text))


def _aligned(column: Sequence[Score]) -> list[Text]:
    """The texts of a column of scores, its numbers aligned."""
    width = max((len(score.score) for score in column if score.aligned), default=0)
    blank = " " if any(score.mark for score in column) else ""

    def text(score: Score, mean: str, beside: str) -> Text:
        if not score.aligned:
            return styled("  ".join(filter(None, (score.score, beside))))
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

    return [text(*place) for place in lined_up(column)]


def fit(sheet: Sheet, width: int) -> list[dict[int, int]]:
    """Divide the columns of a sheet into pieces, as `divided` does: texts are folded, numbers are not."""
    return divided([_column(sheet, at) for at in range(len(sheet.headers))], sheet.names, width)


def _column(sheet: Sheet, at: int) -> Widths:
    header = [sanitize(text) for text in sheet.levels(at)]
    if sheet.of_scores and at >= sheet.names:
        scores = sheet.scores(at)
        whole = [1 + text.cell_len for text in _aligned(scores)]
        folded = [f" {word}" for word in header]
    else:
        texts = [sanitize(text) for text in sheet.texts(at)]
        numbers = [text for text in texts if at >= sheet.names and STARTS_NUMBER.match(text)]
        whole = [cells(text) for text in numbers]
        folded = [header[-1], *set(texts).difference(numbers)]
    longest = max(map(cells, folded), default=0)
    words = [cells(word) for text in folded for word in _WORD.findall(text)]
    least = max(*words, *whole, -(-longest // LINES), 1)
    return least, max(least, longest)
