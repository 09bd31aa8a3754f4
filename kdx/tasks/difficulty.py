"""Divides a test into slices by the difficulty of its targets in some respect."""

from bisect import bisect_left
from functools import cache

from kdx.tasks.corpora import DIFFICULTIES

EDGES = (0, 1, *(2**power for power in range(1, 31)))
"""The greatest value of each slice. Slices widen with the values, so a test has few of them; the last edge is above the
number of tokens in any corpus."""


@cache
def slice_names(respect: str) -> tuple[str, ...]:
    """Return the names of the slices, in the order of `EDGES`: `pairs=0`, `pairs=1`, `pairs=2`, `pairs=3-4`, …"""
    below = (-1, *EDGES[:-1])
    return tuple(
        f"{respect}={low + 1}-{high}" if low + 1 < high else f"{respect}={high}"
        for low, high in zip(below, EDGES, strict=True)
    )


def slice_name(respect: str, value: int) -> str:
    """Return the name of the slice of a value."""
    return slice_names(respect)[bisect_left(EDGES, value)]


def slices_of(corpus: str) -> tuple[str, ...]:
    """Return the respects in which a corpus's test examples differ in difficulty; empty if in none, or if unknown."""
    return DIFFICULTIES.definition(corpus).slices if corpus in DIFFICULTIES else ()
