"""What a cell's seeds say together."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan


@dataclass(frozen=True)
class Summary:
    """Mean and spread of one score over seeds."""

    n: int
    """Seeds that have the score."""
    mean: float
    sd: float | None
    """Sample standard deviation, Σ(x − mean)² / (n − 1) under the root; None for a single seed."""


def summarise(scores: Sequence[float]) -> Summary | None:
    """Mean, standard deviation and number of `scores`; None when there are none.

    A score that is not finite makes the spread NaN.
    """
    if not scores:
        return None
    if all(map(isfinite, scores)):
        return Summary(len(scores), statistics.mean(scores), statistics.stdev(scores) if len(scores) > 1 else None)
    return Summary(len(scores), sum(scores) / len(scores), nan if len(scores) > 1 else None)
