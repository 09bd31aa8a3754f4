"""A plot as a value: what every figure of series draws, on the terminal, on a page and in a file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, isfinite, log, log10
from sys import float_info
from typing import NamedTuple

from kdx.store.records import CurveRecord
from kdx.vocabulary import Direction

Scale = tuple[float, float]
"""The lowest and the highest value of an axis."""

NamedCurve = tuple[str, CurveRecord]
"""A curve with the name that the legend gives it."""

_DECADES = 3
"""An axis over more of them is logarithmic."""


class Point(NamedTuple):
    """A value with the range around it."""

    x: float
    y: float | None
    """The value; None where only the range is known."""
    low: float
    """The lowest value, such as that of any seed."""
    high: float


@dataclass(frozen=True)
class Series:
    """A line or a group of points of a plot."""

    name: str
    points: tuple[Point, ...]
    """Points by x, the lowest first; all values are finite."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What a legend on the terminal says of it, by the head of the column."""
    best: tuple[float, float] | None = None
    """The best of its points (x, y), if its good end is known."""


@dataclass(frozen=True)
class Plot:
    """One or several series over one axis."""

    title: str
    x: str
    """What the horizontal axis is."""
    y: str
    """What the vertical axis is."""
    series: tuple[Series, ...]
    x_span: Scale | None = None
    """The range of the horizontal axis; None: as far as the points reach."""
    y_span: Scale | None = None
    logarithmic: bool = False
    """Whether the horizontal axis is logarithmic."""
    ticks: tuple[str, ...] = ()
    """The values of a list, of which x is the index; empty where x is a number."""
    dots: tuple[tuple[float, float], ...] = ()
    """Marked points (x, y)."""
    joined: bool = True
    """Whether the points of a series are joined by a line."""
    direction: Direction | None = None
    """The good end of the values, if it is known."""

    def spanned(self) -> "Plot | None":
        """The plot with both of its ranges set; None where it has no point."""
        x = self.x_span or scale([point.x for series in self.series for point in series.points])
        values = [value for series in self.series for _, *ys in series.points for value in ys if value is not None]
        y = self.y_span or scale(values)
        return replace(self, x_span=x, y_span=y) if x and y else None


def curves_plot(
    metric: str, curves: Iterable[NamedCurve], *, title: str = "", direction: Direction | None = None
) -> Plot:
    """The plot of one metric over training, without values that are not finite.

    Args:
        title: what the curves have in common.
    """
    series = tuple(_series(name, curve, direction) for name, curve in curves)
    return Plot(f"{title}: {metric}" if title else "", "step", metric, series, direction=direction)


def _series(name: str, curve: CurveRecord, direction: Direction | None) -> Series:
    """A curve with its last and its best value, or its lowest and highest, and where it is not finite."""
    recorded = [*zip(curve.steps, curve.values, strict=True)]
    finite = [(at, value) for at, value in recorded if isfinite(value)]
    lost = [at for at, value in recorded if not isfinite(value)]
    facts, best = {}, None
    if finite:
        low, high = (extreme(finite, key=lambda point: point[1]) for extreme in (min, max))
        best = {None: None, Direction.MIN: low, Direction.MAX: high}[direction]
        facts["last"] = f"{finite[-1][1]:#.4g}"
        extremes = {"best": best} if best else {"lowest": low, "highest": high}
        facts |= {head: f"{value:#.4g} at {at:,}" for head, (at, value) in extremes.items()}
    if lost:
        facts["not finite"] = f"{len(lost):,} step{'' if len(lost) == 1 else 's'} from {lost[0]:,}"
    return Series(name, tuple(Point(at, value, value, value) for at, value in finite), facts, best)


def scale(values: Sequence[float]) -> Scale | None:
    """The range that an axis has to span; None where no value is finite."""
    finite = [value for value in values if isfinite(value)]
    return (min(finite), max(finite)) if finite else None


def is_logarithmic(span: Scale) -> bool:
    """Whether an axis over these values is logarithmic."""
    low, high = span
    return low > 0 and log10(high) - log10(low) > _DECADES


def share(value: float, span: Scale, *, logarithmic: bool) -> float:
    """How far along the axis a value lies, from 0 to 1; 0 on an axis of a single value."""
    low, high = span
    if logarithmic:
        value, low, high = log10(value), log10(low), log10(high)
    # The difference of two finite numbers may be infinite, half of it is not.
    place = (value / 2 - low / 2) / (high / 2 - low / 2) if low < high else 0.0
    return min(max(place, 0.0), 1.0)


def ticks(span: Scale, number: int, *, logarithmic: bool, least: float = 0.0) -> list[float]:
    """About so many round values within a range; powers of ten on a logarithmic axis that has several.

    Args:
        least: the smallest difference between two of them.
    """
    low, high = span
    if low == high:
        return [low]
    if logarithmic and len(powers := ticks((log10(low), log10(high)), number, logarithmic=False, least=1.0)) > 2:
        return [10.0**power for power in powers]
    # Halves, since the difference of two finite numbers may be infinite.
    between = max((high / 2 - low / 2) / (number / 2), float_info.min)
    power = 10.0 ** floor(log10(between))
    step = max(power * min((1, 2, 5, 10), key=lambda size: abs(log(between / power / size))), least)
    # 0.3 / 0.1 is a little less than 3.
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [step * at for at in range(first, last + 1)] or [low, high]
