"""Tests whether common seeds move the cells of a table together."""

from collections.abc import Mapping, Sequence
from itertools import permutations, product
from math import factorial

from kdx.report.statistics.estimates import LEVEL

_EXACT = 5000
"""Largest number of arrangements that are all looked at; of more, as many are drawn."""


def seed_effect(scores: Sequence[Mapping[int, float]]) -> float | None:
    """The p-value of no effect of common seeds: if they move all cells alike, pairing by seed helps.

    Each cell is scaled by its own spread. The statistic is the variance of the seeds' means over cells; the test
    permutes the seeds within each cell, so it holds for any distribution and any spreads.

    Args:
        scores: of each cell, seed → score.

    Returns:
        None where fewer than two cells spread over their common seeds, where even the most extreme arrangement of so
        few seeds and cells has a p-value of 0.05 or more, or where the numbers are too large for a double.
    """
    # late: numpy takes 0.07 s to import, and few tables need it
    import numpy as np

    seeds = sorted(set.intersection(*map(set, scores))) if scores else []
    if len(seeds) < 2:
        return None
    table = np.array([[row[seed] for seed in seeds] for row in scores])
    with np.errstate(over="ignore", invalid="ignore"):
        table = table - table.mean(axis=1, keepdims=True)
        spread = np.sqrt((table**2).mean(axis=1, keepdims=True))
    if not np.isfinite(spread).all():
        return None
    table = (table / np.where(spread > 0, spread, 1))[spread[:, 0] > 0]
    cells, n = table.shape
    # Only how cells are arranged against the first one counts.
    arrangements = factorial(n) ** (cells - 1) if cells else 1
    if 1 / arrangements >= 1 - LEVEL:
        return None
    first, others = table[0], table[1:]
    if arrangements <= _EXACT:
        orders = np.array(list(product(permutations(range(n)), repeat=cells - 1)))
    else:
        rng = np.random.default_rng(0)
        orders = rng.permuted(np.broadcast_to(np.arange(n), (_EXACT, cells - 1, n)), axis=2)
        orders[0] = np.arange(n)  # as observed, which counts as one of them, so that p is never too small
    means = first + np.take_along_axis(np.broadcast_to(others, orders.shape), orders, axis=2).sum(axis=1)
    statistics = (means**2).sum(axis=1)
    observed = ((first + others.sum(axis=0)) ** 2).sum()
    # Arrangements that are equal but for rounding count as extreme.
    return float((statistics >= observed * (1 - 1e-9)).mean())
