"""The arithmetic of a report: what scores over seeds say, alone and side by side.

SciPy's special functions do the work, and they load when first needed; `scipy.stats`, which takes a second to load, is
left to rank agreement (`kdx.report.against`). Levels are two-sided unless said otherwise.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, copysign, exp, fsum, inf, isfinite, lgamma, nan, sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

LEVEL = 0.95
"""Of every interval that a report shows."""
POWER = 0.8
"""Chance of showing a difference that is there, wherever a report says how many seeds it takes."""
_SMALL = 1e-10
"""An eigenvalue below this share of the largest is 0."""
_SMALL_WEIGHT = 1e-6
"""What is lost of a row's weight, at most, where common seeds tell a weighted sum of rows."""


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
        return _quantile(self.n - 1, (1 + LEVEL) / 2) * self.sd / sqrt(self.n)


def summarise(scores: Sequence[float]) -> Summary | None:
    """Mean, standard deviation and number of `scores`; None when there are none.

    A score that is not finite makes the spread NaN.
    """
    if not scores:
        return None
    if all(map(isfinite, scores)):
        return Summary(len(scores), statistics.mean(scores), statistics.stdev(scores) if len(scores) > 1 else None)
    return Summary(len(scores), sum(scores) / len(scores), nan if len(scores) > 1 else None)


def expected_best(scores: Sequence[float], draws: int) -> float:
    """The expected score of the best of `draws` seeds, drawn from these without replacement.

    The unbiased estimator of Tang et al. 2020 ("Showing Your Work Doesn't Always Work"): the i-th worst of n is the
    best of m draws with probability C(i − 1, m − 1) / C(n, m). What "best" means is the order of the scores, so ordered
    by validation it is the expected test score of the best-validation seed.

    Args:
        scores: one a seed, from the worst to the best.
        draws: m, from 1 to their number.
    """
    n = len(scores)
    if not 1 <= draws <= n:
        raise ValueError(f"{draws} draws of {n} scores")
    return sum(comb(rank, draws - 1) / comb(n, draws) * score for rank, score in enumerate(scores))


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


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, each corrected for all of them (Holm 1979)."""
    import numpy as np

    p = np.array(p_values, dtype=float)
    order = p.argsort()
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(p), 0, -1) * p[order]))
    return [float(one) for one in corrected]


def unequal_spread(summaries: Sequence[Summary]) -> float | None:
    """p-value of Bartlett's (1937) test that all spreads are one; None where it cannot be made."""
    spreads = [(one.n - 1, one.sd) for one in summaries if one.sd is not None and isfinite(one.sd)]
    least, largest = min((sd for _, sd in spreads), default=0.0), max((sd for _, sd in spreads), default=0.0)
    if len(spreads) < 2 or not largest:
        return None
    if not least:
        # The limit: seeds that all give the same score, as those of a cell that collapsed, beside others that do not.
        return 0.0
    import numpy as np
    from scipy.special import chdtrc

    df, sd = np.array(spreads).T
    pooled = (df * sd**2).sum() / df.sum()
    deviance = df.sum() * np.log(pooled) - (df * np.log(sd**2)).sum()
    correction = 1 + ((1 / df).sum() - 1 / df.sum()) / (3 * (len(spreads) - 1))
    return float(chdtrc(len(spreads) - 1, max(0.0, deviance / correction)))


@dataclass(frozen=True)
class Estimate:
    """A difference of means, or a weighted sum of several, with what is needed to judge it."""

    value: float
    error: float
    """Its standard error."""
    df: int
    """Degrees of freedom of the error, 1 or more."""
    sd: float
    """The residual standard deviation that the error comes from."""

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """By Student's t."""
        half = _quantile(self.df, (1 + level) / 2) * self.error
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """That it is 0, two-sided."""
        return 2 * _tail(abs(self.value), self.error, self.df)

    def p_equivalent(self, margin: float) -> float:
        """That it is `margin` or more away from 0: two one-sided tests (Schuirmann 1987)."""
        return max(_tail(self.value + margin, self.error, self.df), _tail(margin - self.value, self.error, self.df))

    @property
    def effect(self) -> float:
        """In residual standard deviations, without the upward bias of few seeds (Hedges' 1981 exact correction)."""
        if not self.sd:
            return copysign(inf, self.value) if self.value else 0.0
        if self.df < 2:
            return nan
        half = self.df / 2
        correction = exp(lgamma(half) - lgamma(half - 0.5)) / sqrt(half)
        return correction * self.value / self.sd

    def detectable(self, comparisons: int = 1) -> float:
        """The smallest true difference that such an error shows, with probability `POWER`, at the level of 0.05.

        Args:
            comparisons: that share the level (Bonferroni), which is what the first of them needs by Holm.
        """
        from scipy.special import nctdtrinc

        critical = -_quantile(self.df, (1 - LEVEL) / (2 * comparisons))
        return float(nctdtrinc(self.df, 1 - POWER, critical)) * self.error

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


def paired(scores: Mapping[int, float], other: Mapping[int, float]) -> Estimate | None:
    """The paired t-test's estimate of the first mean minus the second, over the seeds that both have.

    Returns:
        None with fewer than two such seeds.
    """
    differences = [score - other[seed] for seed, score in scores.items() if seed in other]
    n = len(differences)
    if n < 2:
        return None
    mean = fsum(differences) / n
    variance = fsum((one - mean) ** 2 for one in differences) / (n - 1)
    # A difference has the variance of two residuals.
    return Estimate(mean, sqrt(variance / n), n - 1, sqrt(variance / 2))


@dataclass(frozen=True)
class SeedModel:
    """score = row + seed + error, fitted by least squares; every row's seeds share one residual variance.

    Seeds are blocks: the same seed means the same order of data in every row, so differences are taken within a seed.
    With two complete rows it is the paired t-test; with more, the error is pooled over all of them, which is what three
    seeds need. Rows may lack seeds.
    """

    rows: tuple[Any, ...]
    effects: "np.ndarray[Any, np.dtype[np.float64]]"
    inverse: "np.ndarray[Any, np.dtype[np.float64]]"
    """Generalised inverse of the rows' normal matrix, after the seeds are swept out."""
    normal: "np.ndarray[Any, np.dtype[np.float64]]"
    sd: float
    """The residual standard deviation."""
    df: int

    @classmethod
    def fit(cls, scores: Mapping[Any, Mapping[int, float]]) -> "SeedModel | None":
        """Fit row → seed → score; None when nothing is left to estimate an error from.

        Scores that are not finite must be left out before.
        """
        import numpy as np

        rows = tuple(scores)
        seeds = sorted({seed for by_seed in scores.values() for seed in by_seed})
        column = {seed: index for index, seed in enumerate(seeds)}
        has = np.zeros((len(rows), len(seeds)))
        values = np.zeros_like(has)
        for row, by_seed in enumerate(scores.values()):
            for seed, score in by_seed.items():
                has[row, column[seed]] = 1
                values[row, column[seed]] = score
        total = has.sum()
        if not total:
            return None
        # Around their mean, so that squares do not cancel.
        values -= has * (values.sum() / total)
        per_seed = has.sum(axis=0)
        normal = np.diag(has.sum(axis=1)) - (has / per_seed) @ has.T
        sizes, directions = np.linalg.eigh(normal)
        kept = sizes > _SMALL * sizes.max()
        inverse = (directions[:, kept] / sizes[kept]) @ directions[:, kept].T
        effects = inverse @ (values - has * (values.sum(axis=0) / per_seed)).sum(axis=1)
        by_seed = (values - has * effects[:, None]).sum(axis=0) / per_seed
        residual = has * (values - effects[:, None] - by_seed)
        # The rows' matrix lacks one rank for each set of rows that no seed joins to the others.
        df = round(total) - len(seeds) - int(kept.sum())
        if df < 1:
            return None
        return cls(rows, effects, inverse, normal, sqrt(float((residual**2).sum()) / df), df)

    def contrast(self, weights: Mapping[Any, float]) -> Estimate | None:
        """The weighted sum of rows; None when the weights ask for what no common seed tells.

        Args:
            weights: row → weight; they sum to 0, and rows that are left out weigh nothing.
        """
        import numpy as np

        if not weights.keys() <= self._index.keys():
            return None
        vector = np.zeros(len(self.rows))
        for row, weight in weights.items():
            vector[self._index[row]] = weight
        if np.abs(self.normal @ (self.inverse @ vector) - vector).max() > _SMALL_WEIGHT:
            return None
        variance = max(0.0, float(vector @ self.inverse @ vector))
        return Estimate(float(vector @ self.effects), self.sd * sqrt(variance), self.df, self.sd)

    def p_pairs(self, rows: Sequence[Any]) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """That two rows are equal, two-sided, for every pair of these in the order of `itertools.combinations`.

        As `contrast` tells it, pair by pair; NaN where no common seed does.
        """
        import numpy as np
        from scipy.special import stdtr

        at = np.array([self._index[row] for row in rows], dtype=int)
        first, second = (at[side] for side in np.triu_indices(len(at), 1))
        sizes = self.inverse.diagonal()
        error = self.sd * np.sqrt(np.maximum(0.0, sizes[first] + sizes[second] - 2 * self.inverse[first, second]))
        difference = np.abs(self.effects[first] - self.effects[second])
        with np.errstate(divide="ignore", invalid="ignore"):
            p = np.where(error > 0, 2 * stdtr(self.df, -difference / error), np.where(difference > 0, 0.0, 1.0))
        return np.where(self._joined[first] == self._joined[second], p, np.nan)

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {row: at for at, row in enumerate(self.rows)}

    @cached_property
    def _joined(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """For each row the first of those that seeds join it to, directly or through others."""
        import numpy as np

        # What no contrast tells is the mean of each such set, and the projection leaves just that.
        rest = np.abs(self.normal @ self.inverse - np.eye(len(self.rows)))
        return np.asarray((rest > 0.5 / len(self.rows)).argmax(axis=0))


def _quantile(df: float, p: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, p))


def _tail(value: float, error: float, df: float) -> float:
    """P(T ≥ value / error)."""
    if not error:
        return 0.5 if not value else 0.0 if value > 0 else 1.0
    from scipy.special import stdtr

    return float(stdtr(df, -value / error))
