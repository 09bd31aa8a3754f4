"""Curves over training on the terminal, one over the other: each has a letter, and nothing is said by colour alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from string import ascii_lowercase

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kdx.report.figures.frame import WIDEST, cropped, framed, plot_columns, plot_row
from kdx.report.figures.scale import Scale, is_logarithmic, scale
from kdx.report.fit import fold
from kdx.sanitize import sanitize
from kdx.store.records import CurveRecord

MOST_CURVES = len(ascii_lowercase)
"""Largest number of curves in one figure."""
_SEVERAL_CURVES = "*"


@dataclass(frozen=True)
class NamedCurve:
    """A curve with the name that the legend gives it."""

    name: str
    curve: CurveRecord

    @property
    def finite(self) -> list[tuple[int, float]]:
        """Its points (step, value), without values that are not finite."""
        return [(at, value) for at, value in zip(self.curve.steps, self.curve.values, strict=True) if isfinite(value)]


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
        yield from cropped(self._lines(min(options.max_width, WIDEST)))

    def _lines(self, width: int) -> Iterator[str]:
        points = [curve.finite for curve in self.curves]
        span = scale([value for curve in points for _, value in curve])
        marks = "●" if len(self.curves) == 1 else ascii_lowercase
        notes = []
        if span is not None:
            ends = f"{span[0]:.4g}", f"{span[1]:.4g}"
            columns = plot_columns(width, ends)
            steps = [at for curve in points for at, _ in curve]
            grid, averaged = self._grid(points, span, (min(steps), max(steps)), columns, marks)
            yield from framed(grid, ends, _steps(min(steps), max(steps), columns))
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
                row = plot_row(sum(value / len(values) for value in values), span, self.height)
                grid[row][column] = mark if grid[row][column] == " " else _SEVERAL_CURVES
        return ["".join(row) for row in grid], averaged


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
