"""Scores against a parameter or a length on the terminal, of signs; nothing is said by colour alone."""

from collections.abc import Iterator, Sequence
from math import log

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.text import Text

from kdx.report.figures.frame import WIDEST, cropped, framed, plot_columns, plot_row
from kdx.report.figures.scale import is_logarithmic, scale, share
from kdx.report.figures.series import AXIS, OverParameter, Series
from kdx.report.fit import fold
from kdx.report.sheets.searches import value_in_words
from kdx.report.statistics.metric import Metric
from kdx.report.wording import rounded
from kdx.sanitize import sanitize

_TRIAL, _SEVERAL_TRIALS, _BEST = "·*●"
_POINT, _LOW, _BAND, _HIGH = "●├─┤"
_LENGTH = "length"
_WIDEST_BANDS, _NARROWEST_BAND = 80, 12
"""Columns of a figure of bands at most, and of its axis at least, where the console has room."""


class TextTrials:
    """A figure that rich prints: a sign for each trial that completed, the score upwards, the parameter across."""

    height = 12
    """Rows of the plot."""

    def __init__(self, plot: OverParameter, metric: Metric) -> None:
        self.plot = plot
        self.metric = metric

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What is drawn, the plot with its axes, and what the signs mean."""
        yield Text(sanitize(f"{self.metric} against {self.plot.name}"), style="bold")
        yield from cropped(self._lines(min(options.max_width, WIDEST)))

    def _lines(self, width: int) -> Iterator[str]:
        span = scale([point.score for point in self.plot.points])
        assert span is not None, "every plot has points, and their scores are finite"
        ends = value_in_words(span[0]), value_in_words(span[1])
        columns = plot_columns(width, ends)
        grid = [[" "] * columns for _ in range(self.height)]
        for point in sorted(self.plot.points, key=lambda point: point.best):
            row, column = plot_row(point.score, span, self.height), round((columns - 1) * self._place(point.at))
            sign = _TRIAL if grid[row][column] == " " else _SEVERAL_TRIALS
            grid[row][column] = _BEST if point.best else sign
        yield from framed(["".join(row) for row in grid], ends, self._across(columns))
        notes = [f"{_TRIAL} a trial, {_SEVERAL_TRIALS} several, {_BEST} the best"]
        notes += ["the parameter's axis is logarithmic"] if self.plot.logarithmic else []
        notes += ["the axis of scores is logarithmic"] if is_logarithmic(span) else []
        yield from fold(f"{'; '.join(notes)}.", width, cell_len)

    def _place(self, at: float) -> float:
        """How far along the axis a value lies, from 0 to 1."""
        low, high = self.plot.span
        if not low < high:
            return 0.0
        if self.plot.logarithmic:
            at, low, high = log(at), log(low), log(high)
        return min(max((at - low) / (high - low), 0.0), 1.0)

    def _across(self, columns: int) -> str:
        """The two ends of the parameter's axis, or the values of a list, each below its signs."""
        words = self.plot.words or tuple(map(value_in_words, self.plot.span))
        line = [" "] * columns
        free = 0
        for place, word in enumerate(map(sanitize, words)):
            middle = round((columns - 1) * place / max(len(words) - 1, 1))
            start = min(max(middle - len(word) // 2, 0), max(columns - len(word), 0))
            if start >= free:
                line[start : start + len(word)] = word
                free = start + len(word) + 1
        return "".join(line)[:columns]


class TextBands:
    """A figure that rich prints: scores against a length, a line for each, on one horizontal axis of scores."""

    def __init__(self, title: str, metric: Metric, series: Sequence[Series]) -> None:
        self.title = title
        self.metric = metric
        self.series = series
        span = scale([value for one in series for _, *values in one.points for value in values])
        assert span is not None, "every series has points, and their values are finite"
        self._span = span

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The title, the groups, the axis with its two ends, and what the signs mean."""
        width = min(options.max_width, _WIDEST_BANDS)
        yield Text(f"{sanitize(self.title)}: {self.metric} against the length", style="bold")
        yield from cropped(self._lines(width))
        bands = any(low < high for one in self.series for _, _, low, high in one.points)
        band = f"; {_LOW}{_BAND}{_HIGH}: from the lowest to the highest of all seeds" if bands else ""
        axis = ". The axis is logarithmic" if is_logarithmic(self._span) else ""
        yield Constrain(Text(f"Length: {AXIS}. {_POINT}: the number in the table{band}{axis}."), width)

    def _lines(self, width: int) -> list[str]:
        lengths = max(len(_LENGTH), *(len(f"{at:.0f}") for one in self.series for at, *_ in one.points))
        groups = [sanitize(one.group) for one in self.series]
        # A blank before the lengths, and the axis with a blank on either side of it.
        room = width - lengths - 4
        names = min(max(map(cell_len, groups)), max(room - _NARROWEST_BAND, room // 2, 1))
        axis = max(room - names, 1)
        lines = [f"{'':{names}} {_LENGTH:>{lengths}}"]
        for one, group in zip(self.series, groups, strict=True):
            folded = fold(group, names, cell_len)
            for row in range(max(len(folded), len(one.points))):
                name = folded[row] if row < len(folded) else ""
                at, *values = one.points[row] if row < len(one.points) else ("",)
                length = f"{at:.0f}" if values else ""
                drawn = self._drawn(values, axis) if values else ""
                lines.append(f"{name}{' ' * (names - cell_len(name))} {length:>{lengths}} │ {drawn}")
        low, high = (rounded(end, self.metric.name) for end in self._span)
        before = " " * (names + lengths + 2)
        lines.append(f"{before}└{_BAND * (axis + 1)}")
        ends = f"{low}{high:>{max(axis - len(low), len(high) + 1)}}" if low != high else low
        return [*lines, f"{before}  {ends}"]

    def _drawn(self, values: Sequence[float], axis: int) -> str:
        """The band and the point of (score, lowest, highest)."""
        point, low, high = (round((axis - 1) * share(value, self._span)) for value in values)
        line = [" "] * axis
        line[low : high + 1] = _BAND * (high + 1 - low)
        line[low], line[high] = _LOW, _HIGH
        line[point] = _POINT
        return "".join(line)
