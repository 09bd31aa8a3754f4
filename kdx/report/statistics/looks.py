"""What looking again and again at growing numbers of seeds costs: a group-sequential t-test.

Seeds are added until a comparison is decided, so it is looked at after 3 seeds of each cell, after 4, and so on. With
each look at the level of 0.05, all of them together would err far more often (Armitage, McPherson & Rowe 1969). Here a
look after n of at most N seeds has the level c · (n / N)³, with c such that all looks together err with 5%. Early looks
get little, since three seeds tell little, so the last one keeps most of the power of a test with N seeds alone; how
fast levels rise was chosen by simulation (`tests/report/until_calibration.py`). It is a group-sequential design whose
boundaries are a power of n (Wang & Tsiatis 1987), as the same level at every look is (Pocock 1977).

The levels hold for Student's t with its few degrees of freedom, not for the normal distribution. Of n independent
scores around 0, let r be the cosine of the angle between them and (1, …, 1), so that t = r · √(n − 1) / √(1 − r²). The
scores are spherically symmetric, so the next one's share of the length of all, v, is independent of every r before it;
and r' = √(n / (n + 1)) · √(1 − v²) · r + v / √(n + 1). This is a Markov chain in one number, whose distribution is
followed up to the width of a grid, as Armitage et al. follow sums.

It is the chain of one noisy cell against a steady one, which no other ratio of two spreads makes err more at one look:
with the degrees of freedom of one cell, n − 1, the t-statistic of two cells has thinner tails (Mickey & Brown 1966). So
a look counts those of one cell, where a comparison without looks counts more (`kdx.report.statistics.estimates`); with
these, some of twelve comparisons together erred in 6% of all draws, once their share of the 5% met three seeds.
"""

from dataclasses import dataclass
from functools import cache
from math import atanh, exp, log, sqrt
from typing import Any

import numpy as np

from kdx.report.statistics import special

_EXPONENT = 3
_LEVELS = 61
_BINS, _FURTHEST, _DENSITY = 400, 12.0, 4.0
"""Bins of artanh(r), where the outermost ones end (r = 1 − 8e−11), and how much denser they are around 0."""


@dataclass(frozen=True)
class Look:
    """A look at cells that have `n` seeds each, where looks began at `first` seeds and end at `last`."""

    n: int
    first: int
    last: int

    def overall(self, p: float, *, sides: int = 2) -> float:
        """The p-value over all looks: how often some look is as extreme as a p-value of `p` is at this one.

        It is a p-value whatever decided that this was the last look (Jennison & Turnbull 1989).

        Args:
            p: of the test by itself.
            sides: 2, or 1 for a one-sided p-value.
        """

        if self.first == self.last or not 0 < p < 1:
            return p
        level = p * (self.last / self.n) ** _EXPONENT
        levels, overall = _levels(self.first, self.last, sides)
        # Below the lowest level, where hardly two looks are extreme together, one is as the other.
        near = exp(float(np.interp(log(level), np.log(levels), np.log(overall)))) * min(1.0, level / levels[0])
        return 1.0 if level >= levels[-1] else max(p, near)

    def alone(self, level: float) -> float:
        """The confidence level of this look's interval, so that the intervals of all looks together hold with `level`.

        They are repeated confidence intervals (Jennison & Turnbull 1989).
        """

        if self.first == self.last:
            return level
        levels, overall = _levels(self.first, self.last, 2)
        of_last = exp(float(np.interp(log(1 - level), np.log(overall), np.log(levels))))
        return 1 - of_last * (self.n / self.last) ** _EXPONENT


@cache
def _levels(first: int, last: int, sides: int) -> tuple[Any, Any]:
    """Levels of the last look, and how often some look has a p-value below its own; between them both rise evenly."""
    levels = np.geomspace(1e-12, 1.0, _LEVELS)
    overall = np.array([_any_look(first, last, float(level), sides) for level in levels])
    return levels, np.maximum.accumulate(overall)


def _any_look(first: int, last: int, level: float, sides: int) -> float:
    """The probability that some look has a p-value below its level.

    Args:
        level: of the last look.
    """
    crossed, within = 0.0, np.empty(0)
    for n in range(first, last + 1):
        own = level * (n / last) ** _EXPONENT
        t = -float(special.stdtrit(n - 1, own / sides))
        if t <= 0:
            return 1.0
        bound = t / sqrt(n - 1 + t * t)
        if n == first:
            crossed, within = own, _first(n)
        else:
            above = _above(n, bound)
            crossed += float(within @ (above + above[::-1] if sides == 2 else above))
            within = within @ _step(n)
        within = within * _kept(bound, sides)
    return min(1.0, crossed)


def _edges() -> Any:
    return _FURTHEST / np.sinh(_DENSITY) * np.sinh(_DENSITY * np.linspace(-1, 1, _BINS + 1))


@cache
def _first(n: int) -> Any:
    """The probability of each bin after n scores."""
    t = np.sinh(_edges()) * sqrt(n - 1)  # r / √(1 − r²) = sinh(artanh r)
    below = special.stdtr(n - 1, t)
    below[0], below[-1] = 0.0, 1.0
    return np.diff(below)


@cache
def _step(n: int) -> Any:
    """The probability of each bin after n scores, from the middle of each after n − 1: (before, after)."""
    edges = np.tanh(_edges())
    above = [np.ones(_BINS), *(_above(n, edge) for edge in edges[_BINS // 2 : -1]), np.zeros(_BINS)]
    # Both r and its negative have the same chain.
    mirrored = [1 - column[::-1] for column in above[-2:1:-1]]
    return -np.diff(np.stack([above[0], *mirrored, *above[1:]], axis=1), axis=1)


def _above(n: int, bound: float) -> Any:
    """The probability that r after n scores is above a bound of 0 or more, from the middle of each bin after n − 1.

    With v = sin φ, r' = R · cos(φ − ψ); and the density of φ is that of an angle to a plane in n dimensions,
    proportional to cos(φ)^(n − 2).
    """
    edges = _edges()
    r = np.tanh((edges[1:] + edges[:-1]) / 2)
    a, b = sqrt((n - 1) / n) * r, 1 / sqrt(n)
    length, angle = np.hypot(a, b), np.arctan2(b, a)
    half = np.arccos(np.clip(bound / length, -1, 1))
    return _angle_below(n, angle + half) - _angle_below(n, angle - half)


def _angle_below(n: int, angle: Any) -> Any:
    """The distribution function of φ."""
    within = np.clip(angle, -np.pi / 2, np.pi / 2)
    half = special.betainc(0.5, (n - 1) / 2, np.sin(within) ** 2) / 2
    return 0.5 + np.sign(within) * half


def _kept(bound: float, sides: int) -> Any:
    """The share of each bin within the bounds."""
    edges = _edges()
    high = atanh(bound) if bound < 1 else _FURTHEST
    low = -high if sides == 2 else -_FURTHEST
    return np.clip((np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)) / np.diff(edges), 0, 1)
