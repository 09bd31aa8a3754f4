"""Figures on the terminal, of signs and letters; nothing is said by colour alone."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite, log
from string import ascii_lowercase

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.text import Text

from kdx.report.figures.scale import Scale, is_logarithmic, scale, share
from kdx.report.figures.series import AXIS, NamedCurve, OverParameter, Series
from kdx.report.fit import fold
from kdx.report.sheets.searches import value_in_words
from kdx.report.statistics.metric import Metric
from kdx.report.wording import rounded
from kdx.sanitize import sanitize

MOST_CURVES = len(ascii_lowercase)
"""Largest number of curves in one figure."""

_WIDEST = 100
"""Columns of a plot at most, where the console has room."""
_NARROWEST = 20
"""Columns of a plot at least."""
_SEVERAL_CURVES = "*"
_TRIAL, _SEVERAL_TRIALS, _BEST = "·*●"
_POINT, _LOW, _BAND, _HIGH = "●├─┤"
_LENGTH = "length"
_WIDEST_BANDS, _NARROWEST_BAND = 80, 12
"""Columns of a figure of bands at most, and of its axis at least, where the console has room."""


class TextCurves:
    """A figure that rich prints: curves of one metric over the steps, a letter each, with a legend below."""

    height = 16
    """Rows of the plot."""

    def __init__(self, metric: str, curves: Sequence[NamedCurve]) -> None:
        """At most `MOST_CURVES` curves, each with a point at least."""
        self.metric = metric
        self.curves = curves

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The metric, the plot, and for each curve its letter and its numbers."""
        yield Text(sanitize(self.metric), style="bold")
        yield from _cropped(self._lines(min(options.max_width, _WIDEST)))

    def _lines(self, width: int) -> Iterator[str]:
        points = [curve.finite for curve in self.curves]
        span = scale([value for curve in points for _, value in curve])
        marks = "●" if len(self.curves) == 1 else ascii_lowercase
        notes = []
        if span is not None:
            ends = f"{span[0]:.4g}", f"{span[1]:.4g}"
            columns = _columns(width, ends)
            steps = [at for curve in points for at, _ in curve]
            grid, averaged = self._grid(points, span, (min(steps), max(steps)), columns, marks)
            yield from _framed(grid, ends, _steps(min(steps), max(steps), columns))
            notes += [f"{_SEVERAL_CURVES} several curves"] if any(_SEVERAL_CURVES in line for line in grid) else []
            notes += ["a sign stands at the mean of the steps in its column"] if averaged else []
            notes += ["the axis of values is logarithmic"] if is_logarithmic(span) else []
        for mark, curve in zip(marks, self.curves, strict=False):
            first, *rest = fold(f"{sanitize(curve.name)}: {_numbers(curve)}", max(width - 3, 1), cell_len)
            yield f"{mark}  {first}"
            yield from (f"   {line}" for line in rest)
        if notes:
            text = "; ".join(notes)
            yield from fold(f"{text[0].upper()}{text[1:]}.", width, cell_len)

    def _grid(
        self,
        points: Sequence[Sequence[tuple[int, float]]],
        span: Scale,
        steps: tuple[int, int],
        columns: int,
        marks: str,
    ) -> tuple[list[str], bool]:
        """The rows of the plot, and whether some sign stands for several steps of a curve."""
        grid = [[" "] * columns for _ in range(self.height)]
        averaged = False
        first, last = steps
        for mark, curve in zip(marks, points, strict=False):
            in_column: dict[int, list[float]] = {}
            for at, value in curve:
                in_column.setdefault(round((columns - 1) * (at - first) / max(last - first, 1)), []).append(value)
            for column, values in in_column.items():
                averaged |= len(values) > 1
                # Each is divided first: the sum of finite numbers may be infinite.
                row = _row(sum(value / len(values) for value in values), span, self.height)
                grid[row][column] = mark if grid[row][column] == " " else _SEVERAL_CURVES
        return ["".join(row) for row in grid], averaged


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
        yield from _cropped(self._lines(min(options.max_width, _WIDEST)))

    def _lines(self, width: int) -> Iterator[str]:
        span = scale([point.score for point in self.plot.points])
        assert span is not None, "every plot has points, and their scores are finite"
        ends = value_in_words(span[0]), value_in_words(span[1])
        columns = _columns(width, ends)
        grid = [[" "] * columns for _ in range(self.height)]
        for point in sorted(self.plot.points, key=lambda point: point.best):
            row, column = _row(point.score, span, self.height), round((columns - 1) * self._place(point.at))
            sign = _TRIAL if grid[row][column] == " " else _SEVERAL_TRIALS
            grid[row][column] = _BEST if point.best else sign
        yield from _framed(["".join(row) for row in grid], ends, self._across(columns))
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
        yield from _cropped(self._lines(width))
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


def _cropped(lines: Iterable[str]) -> Iterator[Text]:
    return (Text(line.rstrip(), no_wrap=True, overflow="crop") for line in lines)


def _columns(width: int, ends: tuple[str, str]) -> int:
    """Columns of a plot beside the names of its axis."""
    return max(width - max(map(len, ends)) - 2, _NARROWEST)


def _row(value: float, span: Scale, height: int) -> int:
    """The row of a plot, from the top."""
    place = min(max(share(value, span), 0.0), 1.0)  # rounding may lead a mean out of the range
    return height - 1 - round((height - 1) * place)


def _framed(grid: Sequence[str], ends: tuple[str, str], below: str) -> Iterator[str]:
    """A plot with its axes, the ends of the axis of values beside it, and a line below."""
    names = max(map(len, ends))
    for number, line in enumerate(grid):
        # A single value stands at the foot.
        name = ends[0] if number == len(grid) - 1 else ends[1] if number == 0 and ends[0] != ends[1] else ""
        yield f"{name:>{names}} │{line}"
    yield f"{'':{names}} └{'─' * len(grid[0])}"
    yield f"{'':{names}}  {below}"


def _steps(first: int, last: int, columns: int) -> str:
    """The two ends of the axis of steps, and its name between them where there is room."""
    if first == last:
        return f"{first:,} step"
    left, right, middle = f"{first:,}", f"{last:,}", "step"
    room = columns - len(left) - len(right)
    return f"{left}{middle if room > len(middle) + 1 else '':^{max(room, 1)}}{right}"


def _numbers(curve: NamedCurve) -> str:
    """The last, lowest and highest value of a curve, and where it is not finite."""
    lost = [at for at, value in zip(curve.curve.steps, curve.curve.values, strict=True) if not isfinite(value)]
    parts = []
    if points := curve.finite:
        low, high = min(points, key=lambda point: point[1]), max(points, key=lambda point: point[1])
        parts.append(f"last {points[-1][1]:.4g} at step {points[-1][0]:,}")
        if len(points) > 1:
            parts += [f"lowest {low[1]:.4g} at {low[0]:,}", f"highest {high[1]:.4g} at {high[0]:,}"]
    if lost:
        parts.append(f"not finite at {len(lost):,} step{'' if len(lost) == 1 else 's'}, the first {lost[0]:,}")
    return ", ".join(parts)
