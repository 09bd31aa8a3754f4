"""By what the test of a generated corpus is told apart: how difficult its examples are in some respect."""

from kdx.data.corpora import DIFFICULTIES

EDGES = (0, 1, *(2**power for power in range(1, 11)))
"""The greatest value of each slice: a value and its neighbours are told together, the more of them the greater it is,
so that there are never many slices."""


def slice_names(respect: str) -> tuple[str, ...]:
    """What the slices are called, in the order of `EDGES`: `pairs=0`, `pairs=1`, `pairs=2`, `pairs=3-4`, …"""
    below = (-1, *EDGES[:-1])
    return tuple(
        f"{respect}={low + 1}-{high}" if low + 1 < high else f"{respect}={high}"
        for low, high in zip(below, EDGES, strict=True)
    )


def slices_of(corpus: str) -> tuple[str, ...]:
    """In what respects its test examples are told apart; none where it has one difficulty, or nobody knows it."""
    return DIFFICULTIES.definition(corpus).slices if corpus in DIFFICULTIES else ()
