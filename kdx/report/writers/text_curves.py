"""Curves over training on the terminal, one over the other: each has a letter, and nothing is said by colour alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from string import ascii_lowercase
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kdx.report.writers.fit import fold
from kdx.report.writers.scale import Scale, is_logarithmic, scale, share
from kdx.sanitize import sanitize
from kdx.store.records import CurveRecord

MOST_CURVES = len(ascii_lowercase)
"""One figure has so many curves at most."""

_WIDEST, _HEIGHT = 100, 16
"""Columns of the figure at most, where the console has room, and rows of its plot."""
_NARROWEST = 20
"""Columns of the plot at least."""
_SEVERAL = "*"


@dataclass(frozen=True)
class NamedCurve:
    """A curve with the name that the legend gives it."""

    name: str
    curve: CurveRecord

    @property
    def finite(self) -> list[tuple[int, float]]:
        """Its points (step, value), without values that are not finite."""
        return [(at, one) for at, one in zip(self.curve.steps, self.curve.values, strict=True) if isfinite(one)]


class TextCurves:
    """A figure that rich prints: curves of one metric over the steps, with a legend below."""

    def __init__(self, metric: str, curves: Sequence[NamedCurve]) -> None:
        """At most `MOST_CURVES` curves, each with a point at least."""
        self.metric = metric
        self.curves = curves

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The metric, the plot, and for each curve its letter and its numbers."""
        width = min(options.max_width, _WIDEST)
        yield Text(sanitize(self.metric), style="bold")
        for line in self._lines(width):
            yield Text(line.rstrip(), no_wrap=True, overflow="crop")

    def _lines(self, width: int) -> Iterator[str]:
        points = [one.finite for one in self.curves]
        span = scale([value for its in points for _, value in its])
        marks = "●" if len(self.curves) == 1 else ascii_lowercase
        notes = []
        if span is not None:
            ends = [_number(end) for end in span]
            names = max(map(len, ends))
            columns = max(width - names - 2, _NARROWEST)
            steps = [at for its in points for at, _ in its]
            plot = _plot(points, span, (min(steps), max(steps)), columns, marks)
            for number, line in enumerate(plot.lines):
                # Of a single value the sign stands at the foot.
                name = ends[0] if number == _HEIGHT - 1 else ends[1] if number == 0 and ends[0] != ends[1] else ""
                yield f"{name:>{names}} │{line}"
            yield f"{'':{names}} └{'─' * columns}"
            yield f"{'':{names}}  {_steps(min(steps), max(steps), columns)}"
            notes += [f"{_SEVERAL} several curves"] if any(_SEVERAL in line for line in plot.lines) else []
            notes += ["a sign stands at the mean of the steps in its column"] if plot.averaged else []
            notes += ["the axis of values is logarithmic"] if is_logarithmic(span) else []
        for mark, one in zip(marks, self.curves, strict=False):
            first, *rest = fold(f"{sanitize(one.name)}: {_numbers(one)}", max(width - 3, 1), cell_len)
            yield f"{mark}  {first}"
            yield from (f"   {line}" for line in rest)
        if notes:
            text = "; ".join(notes)
            yield from fold(f"{text[0].upper()}{text[1:]}.", width, cell_len)


class _Plot(NamedTuple):
    lines: list[str]
    averaged: bool
    """Whether some sign stands for several steps of a curve."""


def _plot(
    points: Sequence[Sequence[tuple[int, float]]], span: Scale, steps: tuple[int, int], columns: int, marks: str
) -> _Plot:
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    averaged = False
    first, last = steps
    for mark, its in zip(marks, points, strict=False):
        in_column: dict[int, list[float]] = {}
        for at, value in its:
            in_column.setdefault(round((columns - 1) * (at - first) / max(last - first, 1)), []).append(value)
        for column, values in in_column.items():
            averaged |= len(values) > 1
            # Each is divided first: the sum of finite numbers may be infinite.
            mean = sum(value / len(values) for value in values)
            place = min(max(share(mean, span), 0.0), 1.0)  # rounding may lead the mean out of the range
            row = _HEIGHT - 1 - round((_HEIGHT - 1) * place)
            grid[row][column] = mark if grid[row][column] == " " else _SEVERAL
    return _Plot(["".join(row) for row in grid], averaged)


def _steps(first: int, last: int, columns: int) -> str:
    """The two ends of the axis of steps, and its name between them where there is room."""
    if first == last:
        return f"{first:,} step"
    left, right, middle = f"{first:,}", f"{last:,}", "step"
    room = columns - len(left) - len(right)
    return f"{left}{middle if room > len(middle) + 1 else '':^{max(room, 1)}}{right}"


def _numbers(one: NamedCurve) -> str:
    """The last, lowest and highest value of a curve, and where it is not finite."""
    lost = [at for at, value in zip(one.curve.steps, one.curve.values, strict=True) if not isfinite(value)]
    parts = []
    if its := one.finite:
        low, high = min(its, key=lambda point: point[1]), max(its, key=lambda point: point[1])
        parts.append(f"last {_number(its[-1][1])} at step {its[-1][0]:,}")
        if len(its) > 1:
            parts += [f"lowest {_number(low[1])} at {low[0]:,}", f"highest {_number(high[1])} at {high[0]:,}"]
    if lost:
        parts.append(f"not finite at {len(lost):,} step{'' if len(lost) == 1 else 's'}, the first {lost[0]:,}")
    return ", ".join(parts)


def _number(value: float) -> str:
    return f"{value:.4g}"
