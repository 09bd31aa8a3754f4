"""No statistic of a report errs more often than it says: a long simulation (pytest -m long)."""

import os
from math import sqrt

import numpy as np
import pytest
from calibration import SCATTERS, SCENARIOS, SEEDS, SPREADS, Spread, held, marks, misses, misses_over_documents, table

pytestmark = pytest.mark.slow
DRAWS = int(os.environ.get("DRAWS", "300"))


@pytest.mark.long
def test_no_rate_of_an_error_is_above_five_percent() -> None:
    """Within three Monte-Carlo standard errors; 95% intervals at n = 3 miss up to 5.4% where one cell is 8 times as
    noisy, and up to 6.9% at 2 against more (see `kdx.report.statistics.estimates.contrast`)."""
    seed = int(os.environ.get("SEED", np.random.SeedSequence().entropy % 2**32))  # type: ignore[operator]
    print(f"SEED={seed}")
    for each in table(DRAWS, seed):
        if not each.what.endswith("*"):
            assert each.rate <= (0.069 if "2 against" in each.what else 0.054) + 3 * each.error, each


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_intervals_miss_no_more_than_they_say(scenario) -> None:
    """The quick part of it, with a fixed seed."""
    rng = np.random.default_rng(0)
    for n in SEEDS:
        each = misses(scenario, n, 3000, rng)
        assert each.rate <= 0.054 + 3 * sqrt(0.05 * 0.95 / 3000), each


def _too_wide(spread: Spread, n: int, cells: int) -> bool:
    """Where intervals cover more than 97%, as they must with so little known.

    Of three seeds, each cell counts as if it were the noisier one (see `kdx.report.statistics.contrast`). And where
    neither seeds nor documents differ, two estimates of the same variance are there, of which the greater counts.
    """
    return spread.name == "their interaction alone" or (n == 3 and cells == 2) or n == 2


@pytest.mark.long
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("spread", SPREADS, ids=lambda each: each.name)
def test_intervals_over_documents_cover_93_to_97_percent(spread, cells) -> None:
    rng = np.random.default_rng(0)
    for n in SEEDS:
        each = misses_over_documents(spread, n, 4000, rng, cells=cells)
        assert each.rate <= 0.07, each
        assert each.rate >= 0.03 or _too_wide(spread, n, cells), each


@pytest.mark.parametrize("spread", SPREADS, ids=lambda each: each.name)
def test_intervals_over_documents_miss_no_more_than_they_say(spread) -> None:
    """The quick part of it."""
    each = misses_over_documents(spread, 3, 300, np.random.default_rng(0))
    assert each.rate <= 0.07 + 2 * each.error, each


def test_the_marked_cells_hold_the_best() -> None:
    missing, _ = marks(SCENARIOS[0], 3, 100, np.random.default_rng(0))
    assert missing.rate <= 0.05 + 3 * missing.error


@pytest.mark.parametrize(
    ("pairs", "result"),
    [(None, 0.54), ("seed", 0.49)],
)
def test_a_claim_of_two_standard_deviations_is_found_at_three_seeds(pairs, result) -> None:
    rate = held(pairs, SCATTERS[0], 2.0, 3, 200, np.random.default_rng(0))
    assert abs(rate.rate - result) <= 3 * sqrt(0.25 / 200)


@pytest.mark.parametrize("pairs", [None, "seed"])
def test_a_claim_of_equal_cells_holds_in_no_more_than_five_percent(pairs) -> None:
    rate = held(pairs, SCATTERS[2], 0.0, 3, 200, np.random.default_rng(0))
    assert rate.rate <= 0.05 + 3 * rate.error
