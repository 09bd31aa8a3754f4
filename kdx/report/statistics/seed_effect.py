"""Tests whether common seeds move the cells of a table together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class SeedEffect:
    """The effect of common seeds; if they move all cells alike, pairing by seed would help."""

    f: float
    """Variance of the seeds' means over cells, divided by its expectation without a seed effect."""
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
    with np.errstate(over="ignore", invalid="ignore"):
        table = table - table.mean(axis=1, keepdims=True)
        spread = np.sqrt((table**2).mean(axis=1, keepdims=True))
    if not np.isfinite(spread).all():
        return None
    table = (table / np.where(spread > 0, spread, 1))[spread[:, 0] > 0]
    cells = len(table)
    if cells < 2:
        return None
    between = cells * (table.mean(axis=0) ** 2).sum() / (len(seeds) - 1)
    rest = ((table - table.mean(axis=0)) ** 2).sum() / ((cells - 1) * (len(seeds) - 1))
    f = float(between / rest) if rest > 0 else inf
    return SeedEffect(f, float(fdtrc(len(seeds) - 1, (cells - 1) * (len(seeds) - 1), f)))
