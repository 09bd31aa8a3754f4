"""Means and spreads of scores over seeds, and differences of means.

A comparison uses only the spread of the cells that it compares (Welch 1947): a spread that is pooled over cells is
wrong once one of them is noisier than the others, which three seeds cannot rule out. Seeds count as independent of each
other, which is too cautious if the same seed moves all cells alike.

`scipy.stats`, which takes a second to import, is used only for rank agreement. Levels are two-sided unless stated
otherwise.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import copysign, exp, hypot, inf, isfinite, lgamma, nan, sqrt
from statistics import mean, stdev

import numpy as np

from kdx.report.statistics import special
from kdx.report.statistics.by_document import ByDocument, Documents, document_error
from kdx.report.statistics.looks import Look

LEVEL = 0.95
"""Confidence level of every interval in a report."""
POWER = 0.8
"""Probability of showing an existing difference, wherever a report gives a number of seeds."""
_MOST_SEEDS = 10_000
_FAR = 1000.0
"""Noncentrality from which on only the noise of the standard error matters, to 1e-6."""
_SHARES = 200
"""Number of points in the sum over the noisier cell's share."""


@dataclass(frozen=True)
class Summary:
    """Mean and spread of one score over seeds."""

    n: int
    """Number of seeds that have the score."""
    mean: float
    sd: float | None
    """Sample standard deviation, Σ(x − mean)² / (n − 1) under the root; None for a single seed."""


def summarise(scores: Sequence[float]) -> Summary | None:
    """Mean, standard deviation and number of `scores`; None when there are none.

    A score that is not finite makes the spread NaN.
    """
    if not scores:
        return None
    n = len(scores)
    if not all(map(isfinite, scores)):
        return Summary(n, sum(scores) / n, nan if n > 1 else None)
    try:
        return Summary(n, mean(scores), stdev(scores) if n > 1 else None)
    except OverflowError:  # The range from −1.8e308 to 1.8e308 is larger than a double.
        return Summary(n, mean(scores), inf)


@dataclass(frozen=True)
class Estimate:
    """A difference of means, or a weighted sum of several, with its standard error."""

    value: float
    error: float
    """Its standard error."""
    df: float
    """Degrees of freedom of the error, 1 or more."""
    sd: float
    """The standard deviation of a single score, root mean square over the cells."""
    sd_df: float
    """Degrees of freedom of `sd`."""
    documents: Documents | None = None
    """The documents that the error is over as well; None: it is over seeds alone."""
    over_seeds: "Estimate | None" = None
    """The same with the error over seeds alone; None where this one has no other."""
    look: Look | None = None
    """The look that it was made at, with others allowed for; None: seeds were not added by a rule."""

    @property
    def over_documents(self) -> float:
        """The part of the error that more seeds leave, 0 where it is over seeds alone."""
        over_seeds = (self.over_seeds or self).error
        return sqrt((self.error - over_seeds) * (self.error + over_seeds))

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The confidence interval by Student's t."""
        level = self.look.alone(level) if self.look else level
        half = float(special.stdtrit(self.df, (1 + level) / 2)) * self.error
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """The two-sided p-value of a value of 0."""
        return self._over_looks(2 * _tail(abs(self.value), self.error, self.df), sides=2)

    @property
    def p_below(self) -> float:
        """The one-sided p-value of a value of 0 or more."""
        return self._over_looks(_tail(-self.value, self.error, self.df), sides=1)

    def p_equivalent(self, margin: float) -> float:
        """The p-value of a value `margin` or more away from 0: two one-sided tests (Schuirmann 1987)."""
        above, below = (_tail(margin + value, self.error, self.df) for value in (self.value, -self.value))
        return self._over_looks(max(above, below), sides=1)

    def _over_looks(self, p: float, *, sides: int) -> float:
        return self.look.overall(p, sides=sides) if self.look else p

    @property
    def effect(self) -> float:
        """The value in standard deviations over seeds, Hedges' g (1981): corrected for the bias of few seeds.

        The correction is exact where both cells spread alike; NaN where a single difference gives the spread.
        """
        if not self.sd:
            return copysign(inf, self.value) if self.value else 0.0
        if self.sd_df < 2:
            return nan
        half = self.sd_df / 2
        correction = exp(lgamma(half) - lgamma(half - 0.5)) / sqrt(half)
        return correction * (self.value / self.sd)

    def seeds_to_show(self, low: float, high: float, n: int, level: float = LEVEL) -> int | None:
        """Number of seeds with which the interval lies between two bounds with probability `POWER`, if the value stays.

        Args:
            low: lower bound in units of the value; either bound may be infinite.
            high: upper bound in units of the value.
            n: number of seeds behind this estimate; its error over seeds shrinks with the root of n, that over
                documents does not.

        Returns:
            None when the value is not between the bounds, or more than `_MOST_SEEDS` would be needed.
        """
        if not low < self.value < high:
            return None
        if not self.error:
            return n

        over_seeds = (self.over_seeds or self).error
        level = self.look.alone(level) if self.look else level

        def shown(seeds: int) -> bool:
            df = max(1.0, self.df * (seeds - 1) / max(n - 1, 1))
            error = hypot(over_seeds * sqrt(n / seeds), self.over_documents)
            half = float(special.stdtrit(df, (1 + level) / 2)) * error
            return _tail(low + half - self.value, error, df) - _tail(high - half - self.value, error, df) >= POWER

        if not shown(_MOST_SEEDS):
            return None
        return 2 + bisect_left(range(2, _MOST_SEEDS), True, key=shown)


def contrast(
    parts: Sequence[tuple[float, Summary]],
    documents: Sequence[ByDocument | None] = (),
    look: Look | None = None,
) -> Estimate | None:
    """A weighted sum of means, each cell with its own spread; over documents too, where all cells have the same ones.

    The degrees of freedom are those of the noisiest part, divided by its share of the variance. Welch and
    Satterthwaite's are more, and too many for three seeds: if one of two cells spreads eight times as much, 5.9% of
    their 95% intervals miss, and 5.3% of these (`tests/report/calibration.py`). With equal spreads both count both
    cells in full. A cell with fewer scores than another may spread little by chance alone, so its share is taken as if
    it spread no less than all cells together: else 8.7% miss at 2 against 12 scores; so up to 6.6% (2 against 3, the
    former 8 times as noisy), and 5.4% from 3 scores on.

    Args:
        parts: weight and summary of each cell. The weights of a difference sum to 0.
        documents: what each cell's scores are document by document; None where that is not known.
        look: the look that it is made at. The degrees of freedom are then those of the cell with the fewest scores,
            since what the noisiest part's are divided by is known too badly for the small levels of a look.

    Returns:
        None where a cell has a single score, or the numbers are too large for a double.
    """
    errors = []
    for weight, cell in parts:
        if cell.sd is None:
            return None
        errors.append(abs(weight) * (cell.sd / sqrt(cell.n)))
    error, value = hypot(*errors), sum(weight * cell.mean for weight, cell in parts)
    if not (isfinite(value) and isfinite(error)):
        return None
    total = sum(abs(weight) for weight, _ in parts)
    sd = hypot(*(sqrt(abs(weight) / total) * (cell.sd or 0.0) for weight, cell in parts))
    sd_df = float(sum(cell.n - 1 for weight, cell in parts if weight))
    df = float(min(cell.n - 1 for _, cell in parts)) if look else _noisiest_freedom(parts, errors, sd_df)
    weights = [weight for weight, _ in parts]
    return _over_documents(Estimate(value, error, df, sd, sd_df, look=look), weights, documents)


def _noisiest_freedom(parts: Sequence[tuple[float, Summary]], errors: Sequence[float], total: float) -> float:
    """The degrees of freedom of the noisiest part, divided by its share of the variance."""
    most = max(cell.n for weight, cell in parts if weight)
    pooled = hypot(*(sqrt((cell.n - 1) / total) * (cell.sd or 0.0) for weight, cell in parts if weight))
    freedom = []
    for index, (weight, cell) in enumerate(parts):
        part = max(errors[index], abs(weight) * (pooled / sqrt(cell.n))) if cell.n < most else errors[index]
        if part:
            whole = hypot(*errors[:index], part, *errors[index + 1 :])
            freedom.append((cell.n - 1) * (whole / part) * (whole / part))
    return min(freedom, default=total)


def _over_documents(estimate: Estimate, weights: Sequence[float], documents: Sequence[ByDocument | None]) -> Estimate:
    """An estimate with its error over documents crossed with seeds, if documents are known.

    The variance is no less than that over either alone, as it might be where the interaction is badly estimated. So
    intervals are too wide where neither seeds nor documents differ beyond their interaction. The degrees of freedom are
    as in `contrast`, with the documents for one part more.
    """
    known = [by_document for by_document in documents if by_document]
    if len(known) < len(weights):
        return estimate
    error = document_error([*zip(weights, known, strict=True)])
    if error is None or not isfinite(error.variance):
        return estimate
    over_seeds = estimate.error**2
    variance = max(over_seeds, error.variance, over_seeds + error.variance - error.interaction)
    parts = [(df, part) for df, part in ((estimate.df, over_seeds), (error.df, error.variance)) if part]
    freedom = [df if estimate.look else df * variance / part for df, part in parts]
    return replace(
        estimate,
        error=sqrt(variance),
        df=min(freedom, default=estimate.df),
        documents=known[0].documents,
        over_seeds=estimate,
    )


@cache
def minimum_detectable_difference(n: int, comparisons: int = 1, *, sides: int = 2) -> float:
    """The smallest difference of two cells that n seeds of each show with probability `POWER`, at the level of 0.05.

    It is in standard deviations over seeds, for two cells of equal spread; n is 2 or more.

    Args:
        comparisons: number of comparisons that share the level (Bonferroni).
        sides: 2, or 1 if only a difference in one direction counts.
    """
    # The noisier cell's share of the variance is independent of the variance itself, so each share has its own degrees
    # of freedom for the critical value, and a noncentral t gives the probability of passing it.
    d = n - 1
    quantiles = (np.arange(_SHARES) + 0.5) / _SHARES
    share = 1 - special.betaincinv(d / 2, d / 2, quantiles / 2)
    critical = -special.stdtrit(d / share, (1 - LEVEL) / (sides * comparisons))

    def missing(noncentrality: float) -> float:
        if noncentrality < _FAR:
            return float((1 - special.nctdtr(2 * d, noncentrality, critical)).mean()) - POWER
        # SciPy's noncentral t is slow here and fails at 1e5, but the noise of the difference no longer matters.
        return float(special.chdtr(2 * d, 2 * d * (noncentrality / critical) ** 2).mean()) - POWER

    lower, upper = 0.0, 4.0
    while missing(upper) < 0:
        lower, upper = upper, 2 * upper
    # By halves, since importing `scipy.optimize` takes longer than the search.
    while upper - lower > 1e-9 * upper:
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if missing(middle) < 0 else (lower, middle)
    return upper * sqrt(2 / n)


@cache
def detectable_errors(comparisons: int, *, sides: int) -> float:
    """The same in standard errors of the difference, where these are known; arguments as above."""
    return float(special.ndtri(POWER) - special.ndtri((1 - LEVEL) / (sides * comparisons)))


def _tail(value: float, error: float, df: float) -> float:
    """P(T ≥ value / error)."""
    if not error:
        return 0.5 if not value else 0.0 if value > 0 else 1.0
    return float(special.stdtr(df, -value / error))
