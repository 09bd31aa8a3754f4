"""The range of an axis, and whether it is logarithmic."""

from collections.abc import Sequence
from math import isfinite, log10

Scale = tuple[float, float]
"""From the lowest to the highest value of an axis."""

_DECADES = 3
"""An axis over more of them is logarithmic."""


def scale(values: Sequence[float]) -> Scale | None:
    """The range that an axis has to span; None where no value is finite."""
    finite = [value for value in values if isfinite(value)]
    return (min(finite), max(finite)) if finite else None


def is_logarithmic(span: Scale) -> bool:
    """Whether an axis over these values is logarithmic."""
    low, high = span
    return low > 0 and log10(high) - log10(low) > _DECADES


def share(value: float, span: Scale) -> float:
    """How far along the axis a value lies, from 0 to 1; 0 on an axis of a single value."""
    low, high = span
    if is_logarithmic(span):
        value, low, high = log10(value), log10(low), log10(high)
    # The difference of two finite numbers may be infinite, half of it is not.
    return (value / 2 - low / 2) / (high / 2 - low / 2) if low < high else 0.0
