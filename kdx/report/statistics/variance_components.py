"""How much each of several crossed sources contributes to the variance of scores: a mixed model.

score = mean + a_i + b_j + … + rest, each term normal with a variance of its own; a source's term is the same for all
scores that share its level. Variances are estimated by restricted maximum likelihood (REML; Patterson & Thompson
1971), their intervals by the profile of the same likelihood, since with few levels no variance is nearly normal.

The likelihood is written here, and scipy finds its maximum: MixedLM of statsmodels 0.15 stops short of it, or fails on
a singular matrix, where the best estimate of a variance is 0, as it often is of few levels. A test compares the two
where it is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_LEVELS = 3
"""Levels of a source without which its variance is not estimated: two differ by one number, which tells no spread."""
_THRESHOLD = 3.841458820694124
"""By which twice the log-likelihood falls at the ends of a 95% interval: chi-squared with one degree of freedom."""
_NOTHING = 1e-6
"""A difference of deviances that is none."""
_FAR = 1e12
"""A deviance where there is none."""
_LARGEST = 1e6
"""A variance so many times that of the scores is as good as infinite."""


class NotEstimable(Exception):
    """Scores from which the variances cannot be told apart; the message says why, and what is needed."""


@dataclass(frozen=True)
class Component:
    """The variance that one source contributes, on the scale of the scores, squared."""

    levels: int
    """How many different ones of the source there are; of the rest, the degrees of freedom."""
    variance: float
    low: float
    """Of the 95% interval of the variance."""
    high: float
    """Infinite where the scores do not bound it."""

    @property
    def sd(self) -> float:
        """The standard deviation, on the scale of the scores."""
        return sqrt(self.variance)


@dataclass(frozen=True)
class VarianceComponents:
    """What each source contributes to the variance of a score."""

    sources: Mapping[str, Component]
    rest: Component
    """What no source explains by itself: how they act together, and what does not repeat at all."""
    n: int
    """Number of scores."""

    @property
    def total(self) -> float:
        """The variance of a score of which every source is drawn anew."""
        return self.rest.variance + sum(one.variance for one in self.sources.values())

    def share(self, of: Component) -> float | None:
        """The share of a variance in the total; None where no score differs."""
        return of.variance / self.total if self.total > 0 else None


def variance_components(scores: Sequence[float], levels: Mapping[str, Sequence[int]]) -> VarianceComponents:
    """Estimates the variance of each source and of the rest, in the model above.

    Args:
        scores: finite numbers.
        levels: source → the level that each score has of it.

    Raises:
        NotEstimable: a source has fewer levels than `LEAST_LEVELS`, sources vary together, or no score is left for the
            rest.
    """
    # late: numpy takes 0.07 s to import, and few tables need it
    import numpy as np

    y = np.array(scores, dtype=float)
    incidence = {name: _incidence(its) for name, its in levels.items()}
    _refuse(len(y), incidence)
    counts = {name: matrix.shape[1] for name, matrix in incidence.items()}
    freedom = len(y) - 1 - sum(count - 1 for count in counts.values())
    spread = float(y.std())
    if spread <= 8 * np.finfo(float).eps * float(np.abs(y).max()):
        sources = {name: Component(count, 0.0, 0.0, 0.0) for name, count in counts.items()}
        return VarianceComponents(sources, Component(freedom, 0.0, 0.0, 0.0), len(y))
    # Of scores with a spread of one, so that no number of the search is tiny.
    scaled = (y - y.mean()) / spread
    likelihood = _Likelihood(scaled, [*incidence.values()])
    found = likelihood.fitted()
    ends = [likelihood.interval(found, at) for at in range(len(found))]
    components = [
        Component(count, variance * spread**2, low * spread**2, high * spread**2)
        for count, variance, (low, high) in zip((*counts.values(), freedom), found, ends, strict=True)
    ]
    return VarianceComponents(dict(zip(counts, components, strict=False)), components[-1], len(y))


def _incidence(levels: Sequence[int]) -> "NDArray[np.float64]":
    import numpy as np

    _, index = np.unique(np.array(levels), return_inverse=True)
    return np.eye(int(index.max()) + 1)[index]


def _refuse(n: int, incidence: "Mapping[str, NDArray[np.float64]]") -> None:
    import numpy as np

    for name, matrix in incidence.items():
        if (count := matrix.shape[1]) < LEAST_LEVELS:
            have = f"{count} seed{'' if count == 1 else 's'}"
            raise NotEstimable(f"{name} has {have} with a score, and its variance needs {LEAST_LEVELS} at least")
    columns = np.hstack([np.ones((n, 1)), *incidence.values()])
    rank = int(np.linalg.matrix_rank(columns))
    if rank < 1 + sum(matrix.shape[1] - 1 for matrix in incidence.values()):
        raise NotEstimable(f"{' and '.join(incidence)} vary together; cross their seeds to tell them apart")
    if n <= rank:
        raise NotEstimable(f"{n} scores leave none for the rest; it takes {rank + 1} at least")


class _Likelihood:
    """The restricted likelihood of the model, as a function of the variances."""

    def __init__(self, y: "NDArray[np.float64]", incidence: "Sequence[NDArray[np.float64]]") -> None:
        import numpy as np

        # Contrasts have no mean, and their likelihood is the restricted one (Patterson & Thompson 1971). Those that no
        # source moves are independent of the others, so that only their squares count: what is left is small.
        n, moved = len(y), np.hstack([one - one.mean(axis=0) for one in incidence])
        left, sizes, _ = np.linalg.svd(moved, full_matrices=False)
        basis = left[:, sizes > sizes[0] * n * np.finfo(float).eps]
        self._y = basis.T @ y
        projected = [basis.T @ one for one in incidence]
        self._blocks = np.array([*(one @ one.T for one in projected), np.eye(basis.shape[1])])
        self._freedom = n - 1 - basis.shape[1]
        remainder = y - y.mean() - basis @ self._y
        self._squares = float(remainder @ remainder)

    def deviance(self, sds: "NDArray[np.float64]") -> "tuple[float, NDArray[np.float64]]":
        """-2 log-likelihood, but for a constant, at standard deviations whose signs do not matter; and its slopes."""
        import numpy as np

        rest = sds[-1] ** 2
        covariance = np.tensordot(sds**2, self._blocks, 1)
        sign, logarithm = np.linalg.slogdet(covariance)
        if sign <= 0 or rest <= 0:
            return _FAR, np.zeros(len(sds))
        inverse = np.linalg.inv(covariance)
        weighted = inverse @ self._y
        by_variance = np.tensordot(self._blocks, inverse, 2) - weighted @ (self._blocks @ weighted).T
        by_variance[-1] += self._freedom / rest - self._squares / rest**2
        value = logarithm + self._y @ weighted + self._freedom * np.log(rest) + self._squares / rest
        return float(value), 2 * sds * by_variance

    def fitted(self) -> list[float]:
        """The variances at the maximum; the last is that of the rest."""
        import numpy as np

        # late: scipy takes 0.1 to 0.5 s to import, and few tables need it
        from scipy.optimize import minimize

        count = len(self._blocks)
        starts = [np.full(count, 0.5), np.array([0.1] * (count - 1) + [1.0])]
        tries = [minimize(self.deviance, start, jac=True, method="BFGS") for start in starts]
        best = min(tries, key=lambda one: float(one.fun))
        sds = np.abs(best.x)
        for at in range(count - 1):
            # Near 0 the slope fades, so that a search ends before it.
            without = np.where(np.arange(count) == at, 0.0, sds)
            if self.deviance(without)[0] <= best.fun + _NOTHING:
                sds = without
        return [float(one) for one in sds**2]

    def interval(self, found: Sequence[float], at: int) -> tuple[float, float]:
        """The 95% interval of one variance, by its profile."""
        import numpy as np
        from scipy.optimize import brentq

        least, _ = self.deviance(np.sqrt(found))

        def above(variance: float) -> float:
            """How much the profile is above the ends of the interval."""
            return self._profile(found, at, variance) - least - _THRESHOLD

        best = found[at]
        tiny = 0.0 if at < len(found) - 1 else 1e-12  # the rest is never nothing
        low = 0.0 if best <= tiny or above(tiny) <= 0 else float(brentq(above, tiny, best, xtol=1e-4, rtol=1e-3))
        high = max(2 * best, 0.1)
        while above(high) < 0:
            high *= 4
            if high > _LARGEST:
                return low, inf
        return low, float(brentq(above, max(best, tiny), high, xtol=1e-4, rtol=1e-3))

    def _profile(self, found: Sequence[float], at: int, variance: float) -> float:
        """The deviance with one variance given, and the others as they fit best."""
        import numpy as np
        from scipy.optimize import minimize

        others = [place for place in range(len(found)) if place != at]

        every = np.empty(len(found))
        every[at] = sqrt(variance)

        def deviance(sds: "NDArray[np.float64]") -> "tuple[float, NDArray[np.float64]]":
            every[others] = sds
            value, slopes = self.deviance(every)
            return value, slopes[others]

        # A start at 0 would stay there, for the slope is 0.
        start = [max(sqrt(found[place]), 0.1) for place in others]
        return float(minimize(deviance, start, jac=True, method="BFGS").fun)
