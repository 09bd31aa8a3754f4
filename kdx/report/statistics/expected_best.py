"""The expected score of the best among fewer seeds, or among fewer trials of a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

_MOST_DRAWS = 1000
"""Largest m for which the expected best of m seeds is computed."""
_BAND = (0.05, 0.95)


def expected_best(scores: Sequence[float]) -> list[float]:
    """The expected score of the best of 1, 2, … `_MOST_DRAWS` seeds, drawn from these without replacement.

    The unbiased estimator of Tang et al. 2020 ("Showing Your Work Doesn't Always Work"): the i-th worst of n is the
    best of m draws with probability C(i − 1, m − 1) / C(n, m). The order of the scores defines "best", so with scores
    in the order of validation it is the expected test score of the best-validation seed.

    Args:
        scores: one score for each seed, from the worst to the best.

    Returns:
        The expected score for each m up to `_MOST_DRAWS` or the number of scores.
    """
    n = len(scores)
    ordered, below = np.array(scores, dtype=float), np.arange(n)
    weights = np.full(n, 1 / n) if n else np.zeros(0)
    expected = []
    with np.errstate(invalid="ignore", over="ignore"):
        for draws in range(1, min(n, _MOST_DRAWS) + 1):
            if draws > 1:
                weights = weights * (below - draws + 2) * (draws / ((draws - 1) * (n - draws + 1)))
            # The worst m − 1 are never the best of m, so they do not matter, even if they are infinite.
            expected.append(float(ordered[draws - 1 :] @ weights[draws - 1 :]))
    return expected


@dataclass(frozen=True)
class BestOf:
    """The best of a number of independent draws."""

    draws: int
    expected: float
    low: float
    high: float
    """The best of nine in ten such searches lies between `low` and `high`."""


def best_of_draws(scores: Sequence[float]) -> list[BestOf]:
    """The best of 1, 2, … independent draws from the empirical distribution of these scores.

    The estimator of Dodge et al. 2019 ("Show Your Work", Eq. 1): draws are with replacement, so that the i-th worst of
    n scores is the best of m with probability (i/n)^m - ((i - 1)/n)^m. It knows of no score beyond the best that was
    seen, so it is too pessimistic, the more the nearer m is to n (Tang et al. 2020).

    Args:
        scores: from the worst to the best.

    Returns:
        For each m up to their number, the expected best, and the 5th and 95th percentile of the best.
    """
    n = len(scores)
    bests = []
    for draws in range(1, n + 1):
        below = [(place / n) ** draws for place in range(n + 1)]
        expected = fsum(score * (below[place + 1] - below[place]) for place, score in enumerate(scores))
        ends = (next(place for place in range(n) if below[place + 1] >= level) for level in _BAND)
        low, high = sorted(scores[place] for place in ends)
        bests.append(BestOf(draws, expected, low, high))
    return bests
