"""A plot on the terminal: each series has a letter, and nothing is said by colour alone."""

import textwrap
from collections.abc import Iterator
from string import ascii_lowercase

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kdx.report.figures.plot import Plot, Scale, is_logarithmic, share
from kdx.sanitize import sanitize

MOST_SERIES = len(ascii_lowercase)
"""Largest number of series in one figure."""
_SEVERAL, _DOT, _POINT = "*", "●", "·"
_HEIGHT = 16
"""Rows of a plot."""
_WIDEST, _NARROWEST = 100, 20
"""Columns of a figure at most, and of its plot at least, where the console has room."""


class TextPlot:
    """A figure that rich prints, with a legend below."""

    def __init__(self, plot: Plot) -> None:
        """Take a plot with up to `MOST_SERIES` series."""
        self.plot = plot

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the title, the plot with its axes, and for each series its letter and its numbers."""
        yield Text(sanitize(self.plot.title or self.plot.y), style="bold")
        for line in self._lines(min(options.max_width, _WIDEST)):
            yield Text(line.rstrip(), no_wrap=True, overflow="crop")

    def _lines(self, width: int) -> Iterator[str]:
        plot = self.plot
        marks = ascii_lowercase if len(plot.series) > 1 else _POINT if plot.dots else _DOT
        notes = []
        if spanned := plot.spanned():
            assert spanned.x_span is not None and spanned.y_span is not None
            ends = [f"{end:.4g}" for end in spanned.y_span]
            names = max(map(len, ends))
            columns = max(width - names - 2, _NARROWEST)
            rows = self._grid(spanned, spanned.x_span, spanned.y_span, columns, marks)
            for number, row in enumerate(rows):
                # A single value stands at the foot.
                is_top = number == 0 and ends[0] != ends[1]
                end = ends[0] if number == len(rows) - 1 else ends[1] if is_top else ""
                yield f"{end:>{names}} │{row}"
            yield f"{'':{names}} └{'─' * columns}"
            yield f"{'':{names}}  {_below(spanned, spanned.x_span, columns)}"
            notes += [f"{_SEVERAL} several"] if any(_SEVERAL in row for row in rows) else []
            notes += [f"{_DOT} the best"] if plot.dots else []
            notes += [f"the axis of {plot.x} is logarithmic"] if plot.logarithmic else []
            notes += ["the axis of values is logarithmic"] if is_logarithmic(spanned.y_span) else []
        for mark, series in zip(marks, plot.series, strict=False):
            legend = ": ".join(filter(None, (sanitize(series.name), series.detail)))
            yield from textwrap.wrap(f"{mark}  {legend}", width, subsequent_indent="   ")
        if notes:
            text = "; ".join(map(sanitize, notes))
            yield from textwrap.wrap(f"{text[0].upper()}{text[1:]}.", width)

    def _grid(self, plot: Plot, x_span: Scale, y_span: Scale, columns: int, marks: str) -> list[str]:
        """The rows of the plot."""
        grid = [[" "] * columns for _ in range(_HEIGHT)]

        def place(x: float, y: float) -> tuple[int, int]:
            height = share(y, y_span, logarithmic=is_logarithmic(y_span))
            across = share(x, x_span, logarithmic=plot.logarithmic)
            return _HEIGHT - 1 - round((_HEIGHT - 1) * height), round((columns - 1) * across)

        for mark, series in zip(marks, plot.series, strict=False):
            for point in series.points:
                if point.y is not None:
                    row, column = place(point.x, point.y)
                    is_taken = grid[row][column] not in (" ", mark) or grid[row][column] == _POINT
                    grid[row][column] = _SEVERAL if is_taken else mark
        for x, y in plot.dots:
            row, column = place(x, y)
            grid[row][column] = _DOT
        return ["".join(row) for row in grid]


def _below(plot: Plot, span: Scale, columns: int) -> str:
    """The two ends of the horizontal axis and its name, or the values of a list, each below its place."""
    words = list(plot.ticks)
    if not words:
        low, high = (f"{end:,.10g}" for end in span)
        words = [low, plot.x, high] if low != high else [f"{low} {plot.x}"]
    line = [" "] * columns
    free = 0
    for index, word in enumerate(map(sanitize, words)):
        middle = round((columns - 1) * index / max(len(words) - 1, 1))
        start = max(min(middle - len(word) // 2, columns - len(word)), 0)
        if start >= free:
            line[start : start + len(word)] = word
            free = start + len(word) + 1
    return "".join(line)[:columns]
