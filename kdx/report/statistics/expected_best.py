"""The expected score of the best-validation seed among fewer seeds."""

from collections.abc import Sequence

MOST_DRAWS = 1000
"""Largest m for which the expected best of m seeds is computed."""


def expected_best(scores: Sequence[float], most: int = MOST_DRAWS) -> list[float]:
    """The expected score of the best of 1, 2, … `most` seeds, drawn from these without replacement.

    The unbiased estimator of Tang et al. 2020 ("Showing Your Work Doesn't Always Work"): the i-th worst of n is the
    best of m draws with probability C(i − 1, m − 1) / C(n, m). The order of the scores defines "best", so with scores
    in the order of validation it is the expected test score of the best-validation seed.

    Args:
        scores: one score for each seed, from the worst to the best.

    Returns:
        The expected score for each m up to `most` or the number of scores.
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
            # The worst m − 1 are never the best of m, so they do not matter, even if they are infinite.
            found.append(float(ordered[draws - 1 :] @ weights[draws - 1 :]))
    return found
