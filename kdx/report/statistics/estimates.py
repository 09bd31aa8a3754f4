"""The arithmetic of a report: what scores over seeds say, alone and side by side.

A comparison rests on the spread of the very cells that it compares (Welch 1947): a spread that is pooled over cells
tells wrong of each once one of them is noisier than the others, which three seeds cannot rule out. Seeds are taken as
independent of each other; where the same seed moves all cells alike, that is too cautious (`seed_effect` tells).

SciPy's special functions do the work, and they load when first needed; `scipy.stats`, which takes a second to load, is
left to rank agreement and to runs that diverge. Levels are two-sided unless said otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import copysign, exp, frexp, fsum, hypot, inf, isfinite, ldexp, lgamma, nan, sqrt
from typing import Any

LEVEL = 0.95
"""Of every interval that a report shows."""
POWER = 0.8
"""Chance of showing a difference that is there, wherever a report says how many seeds it takes."""
MOST_DRAWS = 1000
"""Of the expected best of m seeds, at most."""


@dataclass(frozen=True)
class Summary:
    """Mean and spread of one score over seeds."""

    n: int
    """Seeds that have the score."""
    mean: float
    sd: float | None
    """Sample standard deviation, Σ(x − mean)² / (n − 1) under the root; None for a single seed."""

    @property
    def half_width(self) -> float | None:
        """Half of the mean's 95% interval by Student's t; None for a single seed, NaN where the spread is."""
        if self.sd is None:
            return None
        return _quantile(self.n - 1, (1 + LEVEL) / 2) * (self.sd / sqrt(self.n))


def summarise(scores: Sequence[float]) -> Summary | None:
    """Mean, standard deviation and number of `scores`; None when there are none.

    A score that is not finite makes the spread NaN.
    """
    if not scores:
        return None
    n = len(scores)
    if not all(map(isfinite, scores)):
        return Summary(n, sum(scores) / n, nan if n > 1 else None)
    low, high = min(scores), max(scores)
    if low == high:
        return Summary(n, low, 0.0 if n > 1 else None)
    # Scaled by a power of two, which loses nothing, so that no square overflows; twice around the mean, so that none
    # cancels.
    exponent = frexp(max(-low, high))[1]
    scaled = [ldexp(score, -exponent) for score in scores]
    middle = fsum(scaled) / n
    squares = fsum((score - middle) ** 2 for score in scaled)
    mean = min(high, max(low, ldexp(middle, exponent)))
    try:
        return Summary(n, mean, ldexp(sqrt(squares / (n - 1)), exponent))
    except OverflowError:  # Between −1.8e308 and 1.8e308 lies more than a double holds.
        return Summary(n, mean, inf)


def expected_best(scores: Sequence[float], most: int = MOST_DRAWS) -> list[float]:
    """The expected score of the best of 1, 2, … `most` seeds, drawn from these without replacement.

    The unbiased estimator of Tang et al. 2020 ("Showing Your Work Doesn't Always Work"): the i-th worst of n is the
    best of m draws with probability C(i − 1, m − 1) / C(n, m). What "best" means is the order of the scores, so ordered
    by validation it is the expected test score of the best-validation seed.

    Args:
        scores: one a seed, from the worst to the best.

    Returns:
        One for each m up to `most` or the number of scores.
    """
    import numpy as np

    n = len(scores)
    ordered, below = np.array(scores, dtype=float), np.arange(n)
    weights = np.full(n, 1 / n) if n else np.zeros(0)
    found = []
    with np.errstate(invalid="ignore", over="ignore"):
        for draws in range(1, min(n, most) + 1):
            if draws > 1:
                weights = weights * (below - draws + 2) * (draws / ((draws - 1) * (n - draws + 1)))
            # The worst m − 1 are never the best of m: what they are, infinite perhaps, does not matter.
            found.append(float(ordered[draws - 1 :] @ weights[draws - 1 :]))
    return found


def wilson(hits: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's (1927) interval of a rate of which `hits` of `n` were seen; all of it when n is 0."""
    if not n:
        return 0.0, 1.0
    from scipy.special import ndtri

    z2 = float(ndtri((1 + level) / 2)) ** 2
    rate = hits / n
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    # At the ends the bound is the end itself; rounding must not move it.
    return (max(0.0, middle - half) if hits else 0.0), (min(1.0, middle + half) if hits < n else 1.0)


def rate_difference(hits: tuple[int, int], n: tuple[int, int], level: float = LEVEL) -> tuple[float, float]:
    """Interval of the first rate minus the second, from their Wilson intervals (Newcombe 1998, method 10)."""
    (low, high), (other_low, other_high) = (wilson(k, of, level) for k, of in zip(hits, n, strict=True))
    first, second = (k / of if of else 0.5 for k, of in zip(hits, n, strict=True))
    between = first - second
    below = sqrt((first - low) ** 2 + (other_high - second) ** 2)
    above = sqrt((high - first) ** 2 + (second - other_low) ** 2)
    return between - below, between + above


def p_rates(hits: tuple[int, int], n: tuple[int, int]) -> float:
    """That two rates are equal, two-sided: the exact unconditional test of Barnard (1945), never too small a p-value.

    The tables as far from equal as this one, by the score statistic, are summed over; the rate that both share is the
    one under which they are most likely.
    """
    import numpy as np
    from scipy.special import gammaln

    if not all(n):
        return 1.0
    if n[0] * n[1] > _EXACT:
        from scipy.special import ndtr

        return float(2 * ndtr(-_score(np.array(hits[0]), np.array(hits[1]), n)))
    first, second = (np.arange(of + 1) for of in n)
    far = _score(first[:, None], second[None, :], n)
    extreme = far >= _score(np.array(hits[0]), np.array(hits[1]), n) - 1e-9
    if extreme.all():
        return 1.0
    ways = [gammaln(of + 1) - gammaln(k + 1) - gammaln(of - k + 1) for k, of in zip((first, second), n, strict=True)]
    likely = (ways[0][:, None] + ways[1][None, :])[extreme]
    total = (first[:, None] + second[None, :])[extreme]
    rates = np.linspace(0, 0.5, _RATES + 1)[1:, None]
    each = likely + total * np.log(rates) + (sum(n) - total) * np.log1p(-rates)
    return float(min(1.0, np.exp(each).sum(axis=1).max()))


_RATES = 250
"""Rates between 0 and one half, which is enough for both halves: the test is two-sided."""
_EXACT = 10_000
"""Tables of two rates that are summed over; of more runs, the normal distribution tells the same."""


def _score(first: Any, second: Any, n: tuple[int, int]) -> Any:
    import numpy as np

    pooled = (first + second) / sum(n)
    variance = pooled * (1 - pooled) * (1 / n[0] + 1 / n[1])
    difference = np.abs(first / n[0] - second / n[1])
    return np.divide(difference, np.sqrt(variance), out=np.zeros_like(difference + variance), where=variance > 0)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, each corrected for all of them (Holm 1979)."""
    import numpy as np

    p = np.array(p_values, dtype=float)
    order = p.argsort()
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(p), 0, -1) * p[order]))
    return [float(one) for one in corrected]


@dataclass(frozen=True)
class Estimate:
    """A difference of means, or a weighted sum of several, with what is needed to judge it."""

    value: float
    error: float
    """Its standard error."""
    df: float
    """Degrees of freedom of the error, 1 or more."""
    sd: float
    """The spread of a single score, root mean square over the cells."""

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """By Student's t."""
        half = _quantile(self.df, (1 + level) / 2) * self.error
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """That it is 0, two-sided."""
        return 2 * _tail(abs(self.value), self.error, self.df)

    @property
    def p_below(self) -> float:
        """That it is 0 or more, one-sided."""
        return _tail(-self.value, self.error, self.df)

    def p_equivalent(self, margin: float) -> float:
        """That it is `margin` or more away from 0: two one-sided tests (Schuirmann 1987)."""
        return max(_tail(self.value + margin, self.error, self.df), _tail(margin - self.value, self.error, self.df))

    @property
    def effect(self) -> float:
        """In standard deviations over seeds, without the upward bias of few of them (Hedges' 1981 correction)."""
        if not self.sd:
            return copysign(inf, self.value) if self.value else 0.0
        if self.df < 2:
            return nan
        half = self.df / 2
        correction = exp(lgamma(half) - lgamma(half - 0.5)) / sqrt(half)
        return correction * (self.value / self.sd)

    def seeds_to_show(self, low: float, high: float, n: int, level: float = LEVEL, most: int = 10_000) -> int | None:
        """Seeds with which the interval would lie between two bounds with probability `POWER`, if the value stays.

        Args:
            low: in units of the value; this bound, or the other, may be infinite.
            high: as `low`.
            n: seeds behind this estimate; its error shrinks with their root.

        Returns:
            None when the value is not between the bounds, or more than `most` seeds would be needed.
        """
        if not low < self.value < high:
            return None
        if not self.error:
            return n

        def shown(seeds: int) -> bool:
            df = max(1.0, self.df * (seeds - 1) / max(n - 1, 1))
            error = self.error * sqrt(n / seeds)
            half = _quantile(df, (1 + level) / 2) * error
            return _tail(low + half - self.value, error, df) - _tail(high - half - self.value, error, df) >= POWER

        if not shown(most):
            return None
        below, enough = 1, most
        while enough - below > 1:
            middle = (below + enough) // 2
            below, enough = (below, middle) if shown(middle) else (middle, enough)
        return enough


def contrast(parts: Sequence[tuple[float, Summary]]) -> Estimate | None:
    """A weighted sum of means, each cell with its own spread.

    The degrees of freedom are those of the noisiest part, divided by its share of the variance. Those of Welch and
    Satterthwaite are more, and with three seeds too many: where one of two cells spreads eight times as much, 5.9% of
    the 95% intervals miss then, and 5.3% with these (`tests/report/calibration.py`). With equal spreads both count
    both cells in full.

    Args:
        parts: weights that sum to 0, and the scores of a cell each.

    Returns:
        None where a cell has a single score, or the numbers are too large for a double.
    """
    errors = []
    for weight, one in parts:
        if one.sd is None:
            return None
        errors.append(abs(weight) * (one.sd / sqrt(one.n)))
    error, value = hypot(*errors), _sum(weight * one.mean for weight, one in parts)
    if not (isfinite(value) and isfinite(error)):
        return None
    freedom = [
        (one.n - 1) * (error / part) * (error / part) for part, (_, one) in zip(errors, parts, strict=True) if part
    ]
    total = sum(abs(weight) for weight, _ in parts)
    sd = hypot(*(sqrt(abs(weight) / total) * (one.sd or 0.0) for weight, one in parts))
    return Estimate(value, error, min(freedom, default=float(sum(one.n - 1 for _, one in parts))), sd)


def _sum(values: Any) -> float:
    values = list(values)
    try:
        return fsum(values)
    except OverflowError:
        return float(sum(values))


@cache
def detectable(n: int, comparisons: int = 1, *, sides: int = 2) -> float:
    """The smallest difference of two cells that n seeds of each show with probability `POWER`, at the level of 0.05.

    In standard deviations over seeds, where both cells spread alike; n is 2 or more.

    Args:
        comparisons: that share the level (Bonferroni).
        sides: 2, or 1 where a difference in one direction alone counts.
    """
    import numpy as np
    from scipy.optimize import brentq
    from scipy.special import betaincinv, chdtr, nctdtr, stdtrit

    # The share of the noisier cell in the variance is independent of the variance itself; so each share has its own
    # degrees of freedom for the critical value, and one noncentral t tells the chance to pass it.
    d = n - 1
    quantiles = (np.arange(_SHARES) + 0.5) / _SHARES
    share = 1 - betaincinv(d / 2, d / 2, quantiles / 2)
    critical = -stdtrit(d / share, (1 - LEVEL) / (sides * comparisons))

    def missing(noncentrality: float) -> float:
        if noncentrality < _FAR:
            return float((1 - nctdtr(2 * d, noncentrality, critical)).mean()) - POWER
        # SciPy's noncentral t is slow here and ends at 1e5; but the noise of the difference itself no longer counts.
        return float(chdtr(2 * d, 2 * d * (noncentrality / critical) ** 2).mean()) - POWER

    upper = 4.0
    while missing(upper) < 0:
        upper *= 2
    return float(brentq(missing, 0.0, upper, rtol=1e-6)) * sqrt(2 / n)


_FAR = 1000.0
"""Noncentrality from which on only the noise of the standard error counts, to 1e-6."""
_SHARES = 200
"""Points of a sum over what the noisier of two cells can have as its share."""


def paired(scores: Mapping[int, float], other: Mapping[int, float]) -> Estimate | None:
    """The paired t-test's estimate of the first mean minus the second, over the seeds that both have.

    Returns:
        None with fewer than two such seeds.
    """
    both = summarise([score - other[seed] for seed, score in scores.items() if seed in other])
    if both is None or both.sd is None or not isfinite(both.sd):
        return None
    # A difference has the variance of two scores.
    return Estimate(both.mean, both.sd / sqrt(both.n), both.n - 1, both.sd / sqrt(2))


@dataclass(frozen=True)
class SeedEffect:
    """Whether a seed moves all cells alike, so that pairing by seed would gain something."""

    f: float
    """Variance of the seeds' means over cells, over what they would have if seeds had nothing in common."""
    p: float
    """That they have nothing in common (F test of the two-way table)."""


def seed_effect(scores: Sequence[Mapping[int, float]]) -> SeedEffect | None:
    """The effect of common seeds in cells that all have the same ones; each cell scaled by its own spread.

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


def _quantile(df: float, p: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, p))


def _tail(value: float, error: float, df: float) -> float:
    """P(T ≥ value / error)."""
    if not error:
        return 0.5 if not value else 0.0 if value > 0 else 1.0
    from scipy.special import stdtr

    return float(stdtr(df, -value / error))
