"""A plot on the terminal: curves of braille, each with a colour and a letter; nothing is said by colour alone."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from string import ascii_lowercase

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kdx.report.figures.charts import COLOURS, MOST_DOTS
from kdx.report.figures.plot import Plot, Scale, is_logarithmic, share, ticks
from kdx.sanitize import sanitize
from kdx.vocabulary import Direction

MOST_SERIES = len(ascii_lowercase)
"""Largest number of series in one figure."""
_BEST, _CURVE, _POINT = "●", "━", "⠶"
_ROWS = 12
"""Rows of a plot."""
_WIDEST, _NARROWEST, _MARGIN = 100, 20, 8
"""Columns of a figure at most; of its plot at least, where the console has room; of letters on its right at most."""
_BITS = (0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80)
"""What a dot adds to a character of braille, by its column and row."""
# For a console without braille: dots in the upper half of a character, in the lower half, in both.
_ASCII = {0x2800 + bits: ord(" '.:"[bool(bits & 0x1B) + 2 * bool(bits & 0xE4)]) for bits in range(256)}
_ASCII |= str.maketrans("│┤└┬─━●–", "|++--=o-")

_Place = tuple[int, int]
"""The row and the column of a dot, or of a character."""


class TextPlot:
    """A figure that rich prints, with a legend below."""

    def __init__(self, plot: Plot, names: Sequence[str] = ()) -> None:
        """Take a plot with up to `MOST_SERIES` series.

        Args:
            names: of the series of all figures that have letters and colours in common.
        """
        self.plot = plot
        names = names or [series.name for series in plot.series]
        # The last colour is black, which no dark terminal shows.
        colours = (*COLOURS[:-1], "default")
        self._colours = {name: colours[at % len(colours)] for at, name in enumerate(names)}
        self._letters = dict(zip(names, ascii_lowercase, strict=False)) if len(names) > 1 else {}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the title, the plot with its axes, and a table of the series with their numbers."""
        width = min(options.max_width, _WIDEST)
        for line in (*self._drawn(width), *self._legend(width)):
            line.rstrip()
            line.no_wrap, line.overflow = True, "crop"
            if options.ascii_only:
                line.plain = line.plain.translate(_ASCII)
            yield line

    def _drawn(self, width: int) -> Iterator[Text]:
        plot, title = self.plot.spanned(), sanitize(self.plot.title or self.plot.y)
        if plot is None or plot.x_span is None or plot.y_span is None:
            yield Text(title, "bold")
            return
        x_span, y_span, is_log = plot.x_span, plot.y_span, is_logarithmic(plot.y_span)
        yield Text.assemble((title, "bold"), " (logarithmic)" * is_log)
        values = {value: f"{value:,.10g}" for value in ticks(y_span, 5, logarithmic=is_log)}
        left = max(map(len, values.values())) + 2
        columns = max(width - left - min(len(self._letters), _MARGIN), _NARROWEST)

        def place(x: float, y: float) -> _Place:
            across, up = share(x, x_span, logarithmic=plot.logarithmic), share(y, y_span, logarithmic=is_log)
            return round((4 * _ROWS - 1) * (1 - up)), round((2 * columns - 1) * across)

        curves = {each.name: [place(x, y) for x, y, *_ in each.points if y is not None] for each in plot.series}
        signs: dict[_Place, tuple[str, str]] = {}

        def write(sign: str, name: str, row: int, column: int) -> None:
            """Write a sign over a dot, or over the next free character to its right."""
            at = row // 4, column // 2
            while at in signs:
                at = at[0], at[1] + 1
            signs[at] = sign, name

        for series in plot.series:
            for dot in filter(None, (series.best, *plot.dots)):
                write(_BEST, series.name, *place(*dot))
        for name, letter in self._letters.items():
            for row, column in curves.get(name, [])[:1]:
                write(letter, name, row, column)
        for name, letter in self._letters.items():
            for row, column in curves.get(name, [])[1:][-1:]:
                write(letter, name, row, column + 2)
        cells = (_braille(curves, joined=plot.joined) | signs).items()
        shown = {at: (sign, self._colours[name]) for at, (sign, name) in cells}
        beside = {place(x_span[0], value)[0] // 4: text for value, text in values.items()}
        for row in range(_ROWS):
            text = beside.get(row, "")
            axis = f"{text:>{left - 2}} {'┤' if text else '│'}"
            yield Text.assemble(axis, *(shown.get((row, column), " ") for column in range(width - left)))
        line, below = ["─"] * columns, ""
        for x, text in self._across(x_span):
            column = place(x, y_span[0])[1] // 2
            line[column] = "┬"
            start = min(max(left + column - cell_len(text) // 2, 0), width - cell_len(text))
            if not below or start > cell_len(below):
                below = set_cell_size(below, start) + text
        yield Text(f"{'└':>{left}}{''.join(line)}")
        yield Text(below)
        if plot.logarithmic or plot.x not in plot.title:
            text = f"{sanitize(plot.x)}{' (logarithmic)' * plot.logarithmic}"
            yield Text(f"{'':{left}}{text:^{columns}}")

    def _across(self, span: Scale) -> list[tuple[float, str]]:
        """The ticks of the horizontal axis: the words of a list, a few places that have points, or round values."""
        if self.plot.ticks:
            return [*enumerate(map(sanitize, self.plot.ticks))]
        places = sorted({point.x for series in self.plot.series for point in series.points})
        if len(places) > 5 or self.plot.x_span:
            least = float(all(place == int(place) for place in places))
            places = ticks(span, 4, logarithmic=self.plot.logarithmic, least=least)
        return [(place, f"{place:,.10g}") for place in places]

    def _legend(self, width: int) -> Iterator[Text]:
        """A line for each series, by their last values where their good end is known."""
        sign = {None: 0, Direction.MIN: 1, Direction.MAX: -1}[self.plot.direction]
        series = sorted(self.plot.series, key=lambda each: sign * each.points[-1].high if each.points else inf)
        best = f"{_BEST} the best" if self.plot.dots or any(each.best for each in series) else ""
        heads = list(dict.fromkeys(head for each in series for head in each.facts))
        rows = [(sanitize(each.name), *(each.facts.get(head, "–") for head in heads)) for each in series]
        before = 4 if self._letters else 2
        first, *widths = [max(map(cell_len, column)) for column in zip((best, *heads), *rows, strict=True)]
        first = max(min(first, width - before - sum(widths) - 2 * len(widths)), 1)

        def line(name: str, *facts: str) -> str:
            if cell_len(name) > first:
                name = f"{set_cell_size(name, first - 1 - first // 2)}…{set_cell_size(name[::-1], first // 2)[::-1]}"
            right = (" " * (2 + wide - cell_len(fact)) + fact for wide, fact in zip(widths, facts, strict=True))
            return set_cell_size(name, first) + "".join(right)

        if best or heads:
            yield Text(" " * before + line(best, *heads))
        for each, row in zip(series, rows, strict=True):
            mark = f"{_CURVE if self.plot.joined else _POINT} "
            letter = f"{self._letters.get(each.name, ''):2}" * bool(self._letters)
            yield Text.assemble((letter + mark, self._colours[each.name]), line(*row))


def _braille(curves: Mapping[str, Sequence[_Place]], *, joined: bool) -> dict[_Place, tuple[str, str]]:
    """The characters that draw curves, by row and column, each with a curve that goes through it.

    Points are drawn where they are few, or not joined by lines.
    """
    cells: dict[_Place, tuple[str, str]] = {}
    for name, places in curves.items():
        dots = [
            (row // 2 * 2 + down, column // 2 * 2 + right)
            for row, column in (places if not joined or len(places) <= MOST_DOTS else ())
            for down in range(2)
            for right in range(2)
        ]
        for start, end in pairwise(places) if joined else ():
            steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
            down, right = (end[0] - start[0]) / steps, (end[1] - start[1]) / steps
            dots += [(round(start[0] + down * step), round(start[1] + right * step)) for step in range(steps + 1)]
        for row, column in dots:
            at = row // 4, column // 2
            before = ord(cells[at][0]) if at in cells else 0x2800
            cells[at] = chr(before | _BITS[column % 2][row % 4]), name
    return cells
