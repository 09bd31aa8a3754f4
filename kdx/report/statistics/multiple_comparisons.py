"""P-values of several comparisons: corrected for all of them, and followed look by look until each is decided.

Comparisons that share a correction are looked at together, after every seed, and those that are decided stay as they
are: a p-value over all looks (`kdx.report.statistics.looks`) does not depend on what ended them, so Holm's correction
holds for such p-values as for any (Ye, Li, Liu & Yao 2013). Since nothing is looked at before all seeds of a look have
ended, the order in which they end does not matter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kdx.report.statistics.estimates import LEVEL
from kdx.report.statistics.looks import Look


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for all of them (Holm 1979)."""
    p = np.array(p_values, dtype=float)
    order = p.argsort()
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(p), 0, -1) * p[order]))
    return [float(p_value) for p_value in corrected]


@dataclass(frozen=True)
class Followed:
    """How far a comparison came."""

    n: int
    """Seeds of its last look; 0 before the first."""
    decided: bool = False
    """Whether there is a difference, or the two are equal within the margin."""
    open: bool = True
    """Whether it is to be looked at again, with one more seed."""


def until_decided(
    first: int, last: int, ended: Sequence[int], test: Callable[[int, Look], tuple[float, float] | None]
) -> list[Followed]:
    """Every comparison after all looks that are possible.

    Args:
        first: number of seeds at the first look.
        last: number of seeds at the last one.
        ended: of each comparison, how many seeds, counted from the first, have ended in both cells.
        test: the p-values over all looks of the comparison of this index at a look: of no difference, before the
            correction, and of a difference of the margin or more, which is 1 where there is no margin. None where it
            cannot be made with however many seeds: no seed of a cell has a score, or their numbers do not compare.
    """
    p = [1.0] * len(ended)
    courses = [Followed(0)] * len(ended)
    for look in (Look(n, first, last) for n in range(first, last + 1)):
        still_open = [index for index, course in enumerate(courses) if course.open]
        if not still_open or any(ended[index] < look.n for index in still_open):
            break
        decided = set()
        for index in still_open:
            tested = test(index, look)
            courses[index] = Followed(look.n, open=tested is not None and look.n < last)
            if tested:
                p[index], p_equivalent = tested
                if p_equivalent < 1 - LEVEL:
                    decided.add(index)
        decided |= {index for index, corrected in enumerate(holm(p)) if corrected < 1 - LEVEL}
        for index in decided:
            courses[index] = Followed(courses[index].n, decided=True, open=False)
    return courses
