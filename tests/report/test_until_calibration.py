"""A rule that adds seeds until a comparison is decided errs no more often than it says (all of it: pytest -m long)."""

import os

import numpy as np
import pytest
from until_calibration import (
    EFFECTS,
    FIRST,
    LAST,
    NULLS,
    Scores,
    error,
    false_equalities,
    false_verdicts,
    followed,
    saved,
)

pytestmark = pytest.mark.slow
DRAWS = int(os.environ.get("DRAWS", "3000"))
ALONE = [scores for scores in NULLS if scores.cells == 1 and not scores.perplexity]


@pytest.mark.long
@pytest.mark.parametrize("scores", NULLS, ids=lambda each: each.name)
def test_equal_cells_are_told_apart_in_no_more_than_five_percent(scores) -> None:
    """Within three Monte-Carlo standard errors."""
    seed = int(os.environ.get("SEED", np.random.SeedSequence().entropy % 2**32))  # type: ignore[operator]
    print(f"SEED={seed}")
    rate = false_verdicts(scores, DRAWS, np.random.default_rng(seed))
    assert rate <= 0.05 + 3 * error(DRAWS), f"{scores.name}: {rate:.3f}"


@pytest.mark.long
@pytest.mark.parametrize("scores", ALONE, ids=lambda each: each.name)
def test_a_cell_that_is_worse_by_the_margin_counts_as_equal_in_no_more_than_five_percent(scores) -> None:
    rate = false_equalities(scores, DRAWS, np.random.default_rng(1))
    assert rate <= 0.05 + 3 * error(DRAWS), f"{scores.name}: {rate:.3f}"


@pytest.mark.long
def test_the_larger_the_difference_the_more_seeds_are_saved() -> None:
    result = [saved(Scores("", cells=5), effect, 500, np.random.default_rng(2)) for effect in EFFECTS]
    seeds = [of_cell for _, of_cell, _ in result]
    assert seeds == sorted(seeds, reverse=True) and seeds[0] > 11.5 and seeds[-1] < 6.5
    decided = [share for share, *_ in result]
    assert decided == sorted(decided) and decided[-2] > 0.99


@pytest.mark.parametrize("scores", [NULLS[2], NULLS[11]], ids=lambda each: each.name)
def test_false_verdicts_are_few(scores) -> None:
    """The quick part of it, with a fixed seed."""
    assert false_verdicts(scores, 600, np.random.default_rng(0)) <= 0.05 + 3 * error(600)


def test_a_large_difference_saves_seeds_and_none_at_all_saves_few() -> None:
    rng = np.random.default_rng(0)
    large = [followed(NULLS[0], 5.0, rng)[0] for _ in range(30)]
    none = [followed(NULLS[0], 0.0, rng)[0] for _ in range(30)]
    assert all(each.decided and FIRST <= each.n < LAST for each in large)
    assert sum(each.n == LAST and not each.decided for each in none) >= 26
