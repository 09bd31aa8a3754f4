"""The smallest difference that a number of seeds can show."""

from functools import cache
from math import sqrt

import numpy as np

from kdx.report.statistics.estimates import LEVEL, POWER


@cache
def minimum_detectable_difference(n: int, comparisons: int = 1, *, sides: int = 2) -> float:
    """The smallest difference of two cells that n seeds of each show with probability `POWER`, at the level of 0.05.

    It is in standard deviations over seeds, for two cells of equal spread; n is 2 or more.

    Args:
        comparisons: number of comparisons that share the level (Bonferroni).
        sides: 2, or 1 if only a difference in one direction counts.
    """
    # late: scipy takes 0.1 to 0.5 s to import, and few tables need it
    from scipy.optimize import brentq
    from scipy.special import betaincinv, chdtr, nctdtr, stdtrit

    # The noisier cell's share of the variance is independent of the variance itself, so each share has its own degrees
    # of freedom for the critical value, and a noncentral t gives the probability of passing it.
    d = n - 1
    quantiles = (np.arange(_SHARES) + 0.5) / _SHARES
    share = 1 - betaincinv(d / 2, d / 2, quantiles / 2)
    critical = -stdtrit(d / share, (1 - LEVEL) / (sides * comparisons))

    def missing(noncentrality: float) -> float:
        if noncentrality < _FAR:
            return float((1 - nctdtr(2 * d, noncentrality, critical)).mean()) - POWER
        # SciPy's noncentral t is slow here and fails at 1e5, but the noise of the difference no longer matters.
        return float(chdtr(2 * d, 2 * d * (noncentrality / critical) ** 2).mean()) - POWER

    upper = 4.0
    while missing(upper) < 0:
        upper *= 2
    return float(brentq(missing, 0.0, upper, rtol=1e-6)) * sqrt(2 / n)


@cache
def detectable_errors(comparisons: int = 1, *, sides: int = 2) -> float:
    """The same in standard errors of the difference, where these are known; arguments as above."""
    from scipy.special import ndtri

    return float(ndtri(POWER) - ndtri((1 - LEVEL) / (sides * comparisons)))


_FAR = 1000.0
"""Noncentrality from which on only the noise of the standard error matters, to 1e-6."""
_SHARES = 200
"""Number of points in the sum over the noisier cell's share."""
