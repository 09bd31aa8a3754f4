"""The arithmetic of a report, each against another computation: scipy.stats, brute force, a worked example in print."""

from fractions import Fraction
from itertools import combinations
from math import comb, inf, isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kdx.report.statistics.estimates import Estimate, Summary, contrast, minimum_detectable_difference, summarise
from kdx.report.statistics.expected_best import expected_best
from kdx.report.statistics.multiple_comparisons import holm
from kdx.report.statistics.rates import p_rates, rate_difference, wilson


def test_a_summary_has_the_mean_and_the_spread_with_n_minus_one() -> None:
    assert summarise([1.0, 2.0, 3.0]) == Summary(3, 2.0, 1.0)
    assert summarise([1.0, 2.0]) == Summary(2, 1.5, sqrt(0.5))
    assert summarise([0.1] * 3) == Summary(3, 0.1, 0.0)
    assert summarise([30.5]) == Summary(1, 30.5, None)
    assert summarise([]) is None


@pytest.mark.parametrize(("scores", "mean"), [([1.0, inf], inf), ([-inf, 1.0], -inf), ([1.0, nan], nan)])
def test_a_score_that_is_not_finite_makes_the_spread_nan(scores: list[float], mean: float) -> None:
    summary = summarise(scores)
    assert summary and summary.mean == pytest.approx(mean, nan_ok=True)
    assert summary.sd is not None and isnan(summary.sd)


def test_scores_near_the_largest_double_have_a_mean_and_a_spread() -> None:
    wide, huge, small = summarise([1.7e308, -1.7e308]), summarise([1e155, 3e155]), summarise([1.0, 2.0])
    assert wide == Summary(2, 0.0, inf)
    assert huge and small
    estimate = contrast([(1.0, huge), (-1.0, small)])
    assert estimate and (estimate.value, estimate.error, estimate.df) == pytest.approx((2e155, 1e155, 1))
    assert contrast([(1.0, wide), (-1.0, small)]) is None


scores_of_seeds = st.lists(st.floats(-100, 100), min_size=1, max_size=7)


@given(scores_of_seeds)
def test_the_expected_best_is_the_mean_over_all_draws(scores: list[float]) -> None:
    scores = sorted(scores)
    for draws, result in enumerate(expected_best(scores), 1):
        over_all = [max(drawn) for drawn in combinations(scores, draws)]
        assert result == pytest.approx(sum(over_all) / len(over_all), abs=1e-9)


def test_the_expected_test_score_goes_by_the_order_of_validation() -> None:
    by_validation = [31.0, 28.0, 34.0]
    assert expected_best(by_validation) == pytest.approx([31.0, (28.0 + 34.0 + 34.0) / 3, 34.0])
    assert expected_best([]) == []


def test_a_worst_score_that_is_never_the_best_does_not_matter() -> None:
    assert expected_best([-inf, 1.0, 2.0]) == [-inf, pytest.approx(5 / 3), 2.0]


def test_the_expected_best_of_a_thousand_seeds_is_that_of_exact_fractions() -> None:
    scores = sorted(np.random.default_rng(0).normal(size=1000))
    for draws in (1, 2, 500, 999, 1000):
        exact = sum(Fraction(comb(rank, draws - 1), comb(1000, draws)) * Fraction(x) for rank, x in enumerate(scores))
        assert expected_best(scores)[draws - 1] == pytest.approx(float(exact), rel=1e-9, abs=1e-12)


@given(st.integers(0, 40), st.integers(1, 40))
def test_wilsons_interval_is_that_of_scipy(hits: int, n: int) -> None:
    hits = min(hits, n)
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_nothing_seen_says_nothing_of_a_rate() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = rate_difference((0, 1), (0, 3))
    assert low < 0 < high


@pytest.mark.parametrize(
    ("hits", "n", "interval"),
    [
        ((56, 48), (70, 80), (0.0524, 0.3339)),
        ((9, 3), (10, 10), (0.1705, 0.8090)),
        ((10, 0), (10, 20), (0.6791, 1.0)),
        ((0, 0), (10, 20), (-0.1611, 0.2775)),
    ],
)
def test_the_difference_of_rates_is_newcombes_in_print(
    hits: tuple[int, int], n: tuple[int, int], interval: tuple[float, float]
) -> None:
    """Newcombe 1998, Table II, method 10."""
    assert rate_difference(hits, n) == pytest.approx(interval, abs=6e-5)


def test_holms_correction_step_by_step() -> None:
    # 4 × 0.005, 3 × 0.01, 2 × 0.03, and 0.04, which may not fall below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("hits", "n"), [((3, 0), (3, 3)), ((5, 0), (5, 5)), ((2, 0), (5, 5)), ((0, 7), (3, 10))])
def test_equal_rates_are_barnards_test(hits: tuple[int, int], n: tuple[int, int]) -> None:
    table = [hits, (n[0] - hits[0], n[1] - hits[1])]
    assert p_rates(hits, n) == pytest.approx(stats.barnard_exact(table, n=512).pvalue, abs=2e-4)


@pytest.mark.parametrize(("first", "second"), [(2, 2), (3, 3), (3, 5), (5, 5), (4, 10)])
def test_equal_rates_are_never_rejected_too_often(first: int, second: int) -> None:
    p = {(a, b): p_rates((a, b), (first, second)) for a in range(first + 1) for b in range(second + 1)}
    for level in (0.05, 0.01):
        for rate in np.linspace(0.01, 0.99, 60):
            likely = stats.binom.pmf(range(first + 1), first, rate), stats.binom.pmf(range(second + 1), second, rate)
            wrong = sum(likely[0][a] * likely[1][b] for (a, b), value in p.items() if value <= level)
            assert wrong <= level * 1.001


def test_rates_of_many_runs_are_the_score_test() -> None:
    assert p_rates((100, 80), (300, 300)) == pytest.approx(0.0749, abs=2e-3)
    assert p_rates((0, 0), (3, 3)) == p_rates((0, 0), (0, 3)) == 1.0


def cells(*values: list[float]) -> list[Summary]:
    return [summary for scores in values if (summary := summarise(scores))]


A, B, C = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0], [20.0, 22.0, 19.5, 20.5]


def difference(a: list[float], b: list[float]) -> Estimate:
    first, second = cells(a, b)
    estimate = contrast([(1.0, first), (-1.0, second)])
    assert estimate
    return estimate


def test_a_difference_is_welchs_with_fewer_degrees_of_freedom() -> None:
    result, test = difference(A, C), stats.ttest_ind(A, C, equal_var=False)
    assert result.value / result.error == pytest.approx(test.statistic)
    noisier = max(np.var(A, ddof=1), np.var(C, ddof=1)) / (np.var(A, ddof=1) + np.var(C, ddof=1))
    assert result.df == pytest.approx(3 / noisier) and result.df <= test.df
    half = stats.t.ppf(0.975, result.df) * result.error
    assert result.interval() == pytest.approx((result.value - half, result.value + half))
    assert result.p == pytest.approx(2 * stats.t.sf(abs(result.value) / result.error, result.df))
    assert difference(C, A).p_below == pytest.approx(result.p / 2)


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_a_weighted_sum_of_cells_has_the_variance_of_its_parts(n: int, draw: int) -> None:
    rng = np.random.default_rng(draw)
    parts = [list(rng.normal(size=rng.integers(2, 6))) for _ in range(n)]
    weights = rng.normal(size=n)
    estimate = contrast(list(zip(weights, cells(*parts), strict=True)))
    variances = [w**2 * np.var(part, ddof=1) / len(part) for w, part in zip(weights, parts, strict=True)]
    assert estimate
    assert estimate.value == pytest.approx(sum(w * np.mean(part) for w, part in zip(weights, parts, strict=True)))
    assert estimate.error == pytest.approx(sqrt(sum(variances)))
    # A part with fewer scores than another counts as if it spread no less than all together.
    seeds = [len(part) for part in parts]
    pooled = sum((k - 1) * np.var(part, ddof=1) for k, part in zip(seeds, parts, strict=True)) / (sum(seeds) - n)
    freedom = []
    for own, w, k in zip(variances, weights, seeds, strict=True):
        part = max(own, w**2 * pooled / k) if k < max(seeds) else own
        freedom.append((k - 1) * (sum(variances) - own + part) / part)
    assert estimate.df == pytest.approx(min(freedom))


def test_equivalence_is_two_one_sided_tests() -> None:
    estimate = difference(A, B)
    t = stats.t(estimate.df, loc=0, scale=estimate.error)
    assert estimate.p_equivalent(2.0) == pytest.approx(max(t.sf(estimate.value + 2.0), t.sf(2.0 - estimate.value)))


def test_a_single_seed_has_no_spread_to_judge_by() -> None:
    first, other = cells([1.0], [2.0, 3.0])
    assert contrast([(1.0, first), (-1.0, other)]) is None


def test_equal_runs_differ_by_nothing_with_certainty() -> None:
    same = difference([1.0, 1.0], [1.0, 1.0])
    assert (same.value, same.p, same.p_equivalent(0.1)) == (0.0, 1.0, 0.0)
    assert difference([1.0, 1.0], [2.0, 2.0]).p == 0.0


def test_the_effect_is_hedges() -> None:
    """With 8 degrees of freedom the correction is 0.9027 (Hedges 1981, Table 2: J(8) = 0.9027)."""
    assert Estimate(2.0, 0.5, 4, 1.0, 8).effect == pytest.approx(2 * 0.9027, abs=1e-4)
    assert Estimate(2.0, 0.0, 4, 0.0, 8).effect == inf
    assert isnan(Estimate(2.0, 0.5, 1, 1.0, 1).effect)


@pytest.mark.parametrize(("n", "noisier"), [((2, 12), 1.0), ((2, 12), 3.0), ((2, 5), 3.0), ((3, 12), 3.0)])
def test_intervals_of_unequal_numbers_of_seeds_miss_no_more_than_equal_ones(n, noisier) -> None:
    """Simulated, the cell of few seeds more noisy; with the spreads as observed, 8.1 to 8.7% missed at two seeds."""
    rng = np.random.default_rng(0)
    few, many = noisier * rng.normal(size=(8000, n[0])), rng.normal(size=(8000, n[1]))
    intervals = [difference(*pair).interval() for pair in zip(few.tolist(), many.tolist(), strict=True)]
    missed = np.mean([not low <= 0 <= high for low, high in intervals])
    assert missed <= 0.055 + 3 * sqrt(0.05 * 0.95 / 8000)


@pytest.mark.parametrize(("n", "comparisons", "sides"), [(2, 1, 2), (3, 1, 2), (3, 10, 1), (5, 10, 1), (10, 30, 2)])
def test_a_detectable_difference_is_seen_four_times_in_five(n: int, comparisons: int, sides: int) -> None:
    """By simulation, with the test that tables make."""
    rng = np.random.default_rng(0)
    shift = minimum_detectable_difference(n, comparisons, sides=sides)
    a, b = rng.normal(shift, size=(200_000, n)), rng.normal(size=(200_000, n))
    first, second = a.var(1, ddof=1) / n, b.var(1, ddof=1) / n
    df = (n - 1) * (first + second) / np.maximum(first, second)
    p = stats.t.sf((a.mean(1) - b.mean(1)) / np.sqrt(first + second), df) * sides * comparisons
    assert float((p < 0.05).mean()) == pytest.approx(0.8, abs=0.005)


def test_a_detectable_difference_is_finite_however_many_cells_of_two_seeds_a_table_has() -> None:
    """From about 1,000 on in standard errors, where the noncentral t of SciPy is slow and then ends."""
    few, many, most = (minimum_detectable_difference(2, comparisons) for comparisons in (1000, 10_000, 1_000_000))
    assert 1000 < few < many < most < inf
    # Two cells of two seeds: their t has 1 to 2 degrees of freedom, by the share of the noisier cell.
    share = 1 - stats.beta(0.5, 0.5).ppf((np.arange(200) + 0.5) / 400)
    critical = stats.t.isf(0.025 / 1000, 1 / share)
    assert float(stats.nct.sf(critical, 2, few).mean()) == pytest.approx(0.8, abs=1e-5)


def test_seeds_to_show_a_difference_are_enough_and_one_less_is_not() -> None:
    estimate = Estimate(0.5, 0.4, 2, 0.5, 4)
    seeds = estimate.seeds_to_show(0.0, inf, 3)
    assert seeds is not None and seeds > 3

    def needed(n: int) -> float:
        df = 2 * (n - 1) / 2
        return float(stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df)) * 0.4 * sqrt(3 / n)

    assert needed(seeds) <= 0.5 < needed(seeds - 1)
    assert estimate.seeds_to_show(-inf, 1.0, 3) == seeds
    assert estimate.seeds_to_show(0.5 - 1e-9, inf, 3) is None
    assert estimate.seeds_to_show(-1.0, 0.4, 3) is None
    assert Estimate(0.5, 0.0, 2, 0.0, 4).seeds_to_show(0.0, inf, 3) == 3


def test_seeds_to_show_equivalence_keep_both_ends_within_the_margin() -> None:
    """Simulated: with so many seeds, both ends of the 90% interval are within ±1 four times in five."""
    n, df, sd = 4, 12, 1.5
    seeds = Estimate(0.2, sd * sqrt(2 / n), df, sd, df).seeds_to_show(-1.0, 1.0, n, level=0.9)
    assert seeds
    rng = np.random.default_rng(0)

    def share(seeds: int) -> float:
        residual = df * (seeds - 1) / (n - 1)
        error = sd * sqrt(2 / seeds)
        values = rng.normal(0.2, error, 100_000)
        half = stats.t.ppf(0.95, residual) * error * np.sqrt(rng.chisquare(residual, 100_000) / residual)
        return float(np.mean((values - half > -1) & (values + half < 1)))

    assert share(seeds) == pytest.approx(0.8, abs=0.01)
    assert share(seeds - 4) < 0.79
