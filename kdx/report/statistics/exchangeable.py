"""The error of a weighted sum of means where the cells' spreads are alike: a hierarchical model of the spreads.

Three seeds of a cell hardly tell its spread, twelve cells together do, if they scatter alike. So the logarithm of each
cell's standard deviation comes from a common distribution, Student's t with 4 degrees of freedom, whose place is
unknown and whose scale has a half-normal prior. Its tails let a cell that scatters much more keep its own spread, where
a normal distribution would pull it to the others' (moderated variances; Smyth 2004). The posterior is summed over
grids.

This is an assumption, and few seeds cannot check it: where one of two compared cells scatters three to eight times as
much as all others, some 10% of verdicts "holds" are false instead of 5% (`tests/report/calibration.py`).
"""

from collections.abc import Sequence
from functools import cache
from math import exp, log
from typing import Any

from kdx.report.statistics.estimates import Summary

_SCALE = 0.5
"""Standard deviation of the half-normal prior of the scale; spreads that differ by a factor of e are not unusual."""
_SCALES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.65, 0.9, 1.2, 1.6, 2.2)
_REACH, _POINTS = 7.0, 141
"""How far the grid of logarithms reaches beyond the middle of all cells, and its number of points."""
_DRAWS = 2000
_TAILS = (0.05, 0.005)
"""One-sided probabilities at which the posterior and the t distribution that stands for it agree."""


def exchangeable_error(parts: Sequence[tuple[float, Summary]], others: Sequence[Summary]) -> tuple[float, float] | None:
    """The standard error of a weighted sum of means, and its degrees of freedom.

    Args:
        parts: weight and summary of each cell of the sum; each has two scores or more.
        others: the summaries of the other cells that scatter alike.

    Returns:
        None where no cell spreads.
    """
    # late: numpy takes 0.07 s to import, and few tables need it
    import numpy as np

    cells = [one for _, one in parts] + [one for one in others if one.sd is not None]
    sds = np.array([one.sd for one in cells], dtype=float)
    if not (sds > 0).any():
        return None
    middle = float(np.median(sds[sds > 0]))
    grid, priors, weights = _prior()
    freedom = np.array([one.n - 1.0 for one in cells])[:, None]
    # The likelihood of each standard deviation, (cells, points), from the chi-square distribution of its estimate.
    logs = -freedom * (grid + (sds[:, None] / middle) ** 2 / 2 * np.exp(-2 * grid))
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    with np.errstate(divide="ignore"):
        common = np.log(weights) + np.log(priors @ likelihood.T).sum(axis=1)
    posterior = np.exp(common - common.max())
    # Draws of the common distribution, and for each a draw of every part's variance.
    levels = (np.arange(_DRAWS) + 0.5) / _DRAWS
    drawn = priors[_at(np.cumsum(posterior)[None, :], levels * posterior.sum())]
    rng = np.random.default_rng(0)
    variances = np.zeros(_DRAWS)
    for (weight, one), own in zip(parts, likelihood, strict=False):
        sums = np.cumsum(drawn * own, axis=1)
        found = _at(sums, rng.permutation(levels) * sums[:, -1])
        variances += weight**2 / one.n * np.exp(2 * grid[found])
    error, df = _as_t(np.sqrt(variances))
    return middle * error, df


def _at(sums: Any, targets: Any) -> Any:
    """The first place of each row (or of the one row) of cumulative sums that reaches its target."""
    return (sums < targets[:, None]).sum(axis=1).clip(max=sums.shape[1] - 1)


@cache
def _prior() -> tuple[Any, Any, Any]:
    """The grid (points), distributions over it (scales × places, points), and their prior weights."""
    import numpy as np

    grid = np.linspace(-_REACH, _REACH, _POINTS)
    scales = np.array(_SCALES)
    away = (grid[None, None, :] - grid[None, :, None]) / scales[:, None, None]
    densities = (1 + away**2 / 4) ** -2.5
    densities /= densities.sum(axis=2, keepdims=True)
    weights = np.exp(-((scales / _SCALE) ** 2) / 2) * np.gradient(scales)
    return grid, densities.reshape(-1, _POINTS), np.repeat(weights, _POINTS)


def _as_t(errors: Any) -> tuple[float, float]:
    """Scale and degrees of freedom of the t distribution with the tails of a mixture of normal distributions.

    Args:
        errors: standard deviations of the mixed distributions.
    """
    # late: scipy takes 0.1 to 0.5 s to import, and few tables need it
    from scipy.optimize import brentq
    from scipy.special import ndtr, stdtrit

    def quantile(tail: float) -> float:
        return float(brentq(lambda x: float(ndtr(-x / errors).mean()) - tail, 0.0, 100 * float(errors.max())))

    near, far = map(quantile, _TAILS)

    def excess(log_df: float) -> float:
        return float(stdtrit(exp(log_df), _TAILS[1]) / stdtrit(exp(log_df), _TAILS[0])) - far / near

    lowest, highest = log(0.5), log(1e6)
    df = exp(brentq(excess, lowest, highest)) if excess(lowest) > 0 > excess(highest) else 1e6
    return near / -float(stdtrit(df, _TAILS[0])), df
