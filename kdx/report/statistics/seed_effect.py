"""Tests whether common seeds move the cells of a table together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from sys import float_info

EPSILON = 8 * float_info.epsilon
"""The relative error of a score's distance from its cell's mean, in the score."""


@dataclass(frozen=True)
class SeedEffect:
    """The effect of common seeds; if they move all cells alike, pairing by seed would help."""

    f: float
    """Variance of the seeds' means over cells, divided by its expectation without a seed effect; infinite where the
    scores of all cells move in the same proportions."""
    p: float
    """The p-value of no seed effect (F test of the two-way table)."""


def seed_effect(scores: Sequence[Mapping[int, float]]) -> SeedEffect | None:
    """Estimates the effect of common seeds in cells; each cell is scaled by its own spread.

    Returns:
        None where fewer than two cells spread over at least two common seeds, or the numbers are too large for a
        double.
    """
    import numpy as np
    from scipy.special import fdtrc

    seeds = sorted(set.intersection(*map(set, scores))) if scores else []
    if len(seeds) < 2:
        return None
    table = np.array([[row[seed] for seed in seeds] for row in scores])
    size = np.abs(table).max(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        table = table - table.mean(axis=1, keepdims=True)
        spread = np.sqrt((table**2).mean(axis=1, keepdims=True))
    if not np.isfinite(spread).all():
        return None
    spreads = spread[:, 0] > 0
    table, rounding = (table / np.where(spread > 0, spread, 1))[spreads], (size[spreads] / spread[spreads]) * EPSILON
    cells = len(table)
    if cells < 2:
        return None
    between = cells * (table.mean(axis=0) ** 2).sum() / (len(seeds) - 1)
    rest = ((table - table.mean(axis=0)) ** 2).sum() / ((cells - 1) * (len(seeds) - 1))
    # What rounding alone leaves of cells that move in the same proportions would be a divisor without meaning.
    f = float(between / rest) if rest > (rounding**2).sum() else inf
    return SeedEffect(f, float(fdtrc(len(seeds) - 1, (cells - 1) * (len(seeds) - 1), f)))
