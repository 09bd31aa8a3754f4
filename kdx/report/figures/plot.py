"""A plot as a value: what every figure of series draws, on the terminal, on a page and in a file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log10
from typing import NamedTuple

from kdx.store.records import CurveRecord

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
    detail: str = ""
    """Further text behind the name in a legend on the terminal."""


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

    @property
    def has_bands(self) -> bool:
        """Whether some point has a range."""
        return any(point.low < point.high for series in self.series for point in series.points)

    def spanned(self) -> "Plot | None":
        """The plot with both of its ranges set; None where it has no point."""
        x = self.x_span or scale([point.x for series in self.series for point in series.points])
        values = [value for series in self.series for _, *ys in series.points for value in ys if value is not None]
        y = self.y_span or scale(values)
        return replace(self, x_span=x, y_span=y) if x and y else None


def curves_plot(metric: str, curves: Iterable[NamedCurve]) -> Plot:
    """The plot of one metric over training, without values that are not finite."""
    return Plot("", "step", metric, tuple(_series(name, curve) for name, curve in curves))


def _series(name: str, curve: CurveRecord) -> Series:
    """A curve with its last, lowest and highest value, and where it is not finite."""
    finite = [(at, value) for at, value in zip(curve.steps, curve.values, strict=True) if isfinite(value)]
    lost = [at for at, value in zip(curve.steps, curve.values, strict=True) if not isfinite(value)]
    parts = []
    if finite:
        low, high = (extreme(finite, key=lambda point: point[1]) for extreme in (min, max))
        parts.append(f"last {finite[-1][1]:.4g} at step {finite[-1][0]:,}")
        if len(finite) > 1:
            parts += [f"lowest {low[1]:.4g} at {low[0]:,}", f"highest {high[1]:.4g} at {high[0]:,}"]
    if lost:
        parts.append(f"not finite at {len(lost):,} step{'' if len(lost) == 1 else 's'}, the first {lost[0]:,}")
    return Series(name, tuple(Point(at, value, value, value) for at, value in finite), ", ".join(parts))


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
