"""The curves of a cell's seeds, thinned so that no extreme is lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kdx.store.records import CurveRecord

Points = tuple[tuple[float, float], ...]
"""(optimiser step, value), by step."""


@dataclass(frozen=True)
class Band:
    """One metric of a cell over training, as a band over its seeds and a line of the selected one."""

    steps: tuple[float, ...]
    """Optimiser steps; where there are too many, the middles of intervals of equal length."""
    low: tuple[float, ...]
    """The lowest value of any seed at each step."""
    high: tuple[float, ...]
    """The highest value of any seed at each step."""
    line: Points
    """The points of the selected seed; empty where no seed is selected."""
    seeds: int
    """Number of seeds that have a value."""


def band(curves: Sequence[CurveRecord], selected: CurveRecord | None, most: int) -> Band | None:
    """The seeds' curves as a band and a line, without values that are not finite; None where nothing is left.

    Where there are more than `most` different steps, they are grouped into `most` intervals of equal length: the band
    keeps the lowest and the highest value of each interval, the line keeps the points with these values.
    """
    finite = [one for one in map(_finite, curves) if len(one[0])]
    if not finite:
        return None
    steps, values = (np.concatenate(parts) for parts in zip(*finite, strict=True))
    start, width = steps.min(), np.ptp(steps) / most
    few = len(np.unique(steps)) <= most

    def stretch(of: np.ndarray) -> np.ndarray:
        return of if few else np.minimum((of - start) // width, most - 1)

    stretches, where = np.unique(stretch(steps), return_inverse=True)

    def extremes(of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.full(len(stretches), np.inf), np.full(len(stretches), -np.inf)
        np.minimum.at(low, where, of)
        np.maximum.at(high, where, of)
        return low, high

    (first, last), (low, high) = extremes(steps), extremes(values)
    line: Points = ()
    if selected:
        own, its = _finite(selected)
        starts = [*np.flatnonzero(np.diff(stretch(own), prepend=-1)), len(own)]
        kept = {
            begin + int(extreme)
            for begin, end in pairwise(starts)
            for extreme in (its[begin:end].argmin(), its[begin:end].argmax())
        }
        line = tuple((float(own[index]), float(its[index])) for index in sorted(kept))
    return Band(tuple(((first + last) / 2).tolist()), tuple(low.tolist()), tuple(high.tolist()), line, len(finite))


def _finite(curve: CurveRecord) -> tuple[np.ndarray, np.ndarray]:
    steps, values = np.asarray(curve.steps, float), np.asarray(curve.values)
    kept = np.isfinite(values)
    return steps[kept], values[kept]
