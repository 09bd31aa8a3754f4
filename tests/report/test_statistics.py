"""The arithmetic of a report, each against another computation: scipy.stats, brute force, a worked example in print."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import inf, isclose, isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from kdx.report.statistics import (
    Estimate,
    SeedModel,
    Summary,
    expected_best,
    holm,
    paired,
    rate_difference,
    summarise,
    unequal_spread,
    wilson,
)

finite = st.floats(-1e100, 1e100)


def test_spread_divides_by_n_minus_one() -> None:
    assert summarise([1.0, 2.0, 3.0]) == Summary(3, 2.0, 1.0)
    assert summarise([1.0, 2.0]) == Summary(2, 1.5, sqrt(0.5))


def test_one_seed_has_no_spread_and_none_has_no_summary() -> None:
    assert summarise([30.5]) == Summary(1, 30.5, None)
    assert summarise([]) is None


def test_equal_scores_have_no_spread_at_all() -> None:
    assert summarise([0.1] * 3) == Summary(3, 0.1, 0.0)


@pytest.mark.parametrize(("scores", "mean"), [([1.0, inf], inf), ([-inf, 1.0], -inf)])
def test_an_infinite_score_makes_the_mean_infinite_and_the_spread_nan(scores: list[float], mean: float) -> None:
    summary = summarise(scores)
    assert summary and summary.mean == mean and summary.sd is not None and isnan(summary.sd)


def test_nan_spreads() -> None:
    summary = summarise([1.0, nan])
    assert summary and isnan(summary.mean) and summary.sd is not None and isnan(summary.sd)
    lone = summarise([nan])
    assert lone and isnan(lone.mean) and lone.sd is None


@given(st.lists(finite, min_size=2, max_size=10))
def test_mean_lies_among_the_scores_and_spread_is_theirs_by_definition(scores: list[float]) -> None:
    summary = summarise(scores)
    assert summary and summary.sd is not None
    assert min(scores) <= summary.mean <= max(scores)
    exact = [Fraction(score) for score in scores]
    squares = sum((score - sum(exact) / len(exact)) ** 2 for score in exact)
    # Squared, since a fraction has no root; the square of a tiny spread vanishes.
    assert isclose(summary.sd**2, float(squares / (len(scores) - 1)), rel_tol=1e-12, abs_tol=1e-200)


def test_the_interval_of_the_mean_is_students() -> None:
    scores = [30.1, 31.4, 29.8, 30.9, 30.2]
    summary = summarise(scores)
    assert summary and summary.half_width is not None
    low, high = stats.t.interval(0.95, 4, np.mean(scores), stats.sem(scores))
    assert (summary.mean - summary.half_width, summary.mean + summary.half_width) == pytest.approx((low, high))
    assert Summary(1, 30.0, None).half_width is None


scores_of_seeds = st.lists(st.floats(-100, 100), min_size=1, max_size=7)


@given(scores_of_seeds, st.data())
def test_the_expected_best_is_the_mean_over_all_draws(scores: list[float], data: st.DataObject) -> None:
    scores = sorted(scores)
    draws = data.draw(st.integers(1, len(scores)))
    over_all = [max(drawn) for drawn in combinations(scores, draws)]
    assert expected_best(scores, draws) == pytest.approx(sum(over_all) / len(over_all), abs=1e-9)


def test_the_expected_test_score_goes_by_the_order_of_validation() -> None:
    by_validation = [31.0, 28.0, 34.0]
    of_two = [28.0, 34.0, 34.0]
    assert expected_best(by_validation, 2) == pytest.approx(sum(of_two) / 3)
    assert expected_best(by_validation, 3) == 34.0
    assert expected_best(by_validation, 1) == pytest.approx(31.0)


@pytest.mark.parametrize("draws", [0, 3])
def test_no_more_draws_than_scores(draws: int) -> None:
    with pytest.raises(ValueError, match="draws of 2 scores"):
        expected_best([1.0, 2.0], draws)


@given(st.integers(0, 40), st.integers(1, 40), st.sampled_from([0.9, 0.95, 0.975]))
def test_wilsons_interval_is_that_of_scipy(hits: int, n: int, level: float) -> None:
    hits = min(hits, n)
    expected = stats.binomtest(hits, n).proportion_ci(level, method="wilson")
    assert wilson(hits, n, level) == pytest.approx((expected.low, expected.high), abs=1e-12)


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


def test_unequal_spread_is_bartletts_test() -> None:
    rng = np.random.default_rng(0)
    groups = [list(rng.normal(0, sd, n)) for sd, n in ((1, 5), (2, 7), (4, 4))]
    summaries = [one for group in groups if (one := summarise(group))]
    assert unequal_spread(summaries) == pytest.approx(stats.bartlett(*groups).pvalue)
    assert unequal_spread(summaries[:1]) is None
    # A cell that collapsed, so that all of its seeds score alike, is the limit of unequal spreads.
    assert unequal_spread([*summaries, Summary(3, 1.0, 0.0)]) == 0.0
    small = [replace(one, sd=1e-9) if one is summaries[0] else one for one in summaries]
    assert unequal_spread(small) == pytest.approx(0.0, abs=1e-9)
    assert unequal_spread([Summary(3, 1.0, 0.0), Summary(3, 2.0, 0.0)]) is None


def rows(*values: list[float]) -> dict[int, dict[int, float]]:
    return {row: dict(enumerate(scores)) for row, scores in enumerate(values)}


A, B, C = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0], [20.0, 22.0, 19.5, 20.5]


def test_two_rows_are_the_paired_t_test() -> None:
    model = SeedModel.fit(rows(A, B))
    assert model
    estimate = model.contrast({0: 1.0, 1: -1.0})
    test = stats.ttest_rel(A, B)
    interval = test.confidence_interval(0.95)
    for one in (estimate, paired(dict(enumerate(A)), dict(enumerate(B)))):
        assert one and one.df == 3
        assert one.p == pytest.approx(test.pvalue)
        assert one.interval() == pytest.approx((interval.low, interval.high))
    assert estimate and estimate.sd == pytest.approx(np.std(np.subtract(A, B), ddof=1) / sqrt(2))


def test_equivalence_is_two_one_sided_tests() -> None:
    model = SeedModel.fit(rows(A, B))
    estimate = model and model.contrast({0: 1.0, 1: -1.0})
    difference = np.subtract(A, B)
    lower = stats.ttest_1samp(difference, -2.0, alternative="greater").pvalue
    upper = stats.ttest_1samp(difference, 2.0, alternative="less").pvalue
    assert estimate and estimate.p_equivalent(2.0) == pytest.approx(max(lower, upper))


def by_least_squares(scores: dict[int, dict[int, float]]) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Effects of rows and seeds together, by dummies: coefficients, their inverse, residual variance, its df."""
    names, seeds = list(scores), sorted({seed for by_seed in scores.values() for seed in by_seed})
    design, target = [], []
    for row, by_seed in scores.items():
        for seed, score in by_seed.items():
            design.append([float(row == name) for name in names] + [float(seed == one) for one in seeds])
            target.append(score)
    matrix, values = np.array(design), np.array(target)
    coefficients, *_ = np.linalg.lstsq(matrix, values, rcond=None)
    rank = int(np.linalg.matrix_rank(matrix))
    residual = values - matrix @ coefficients
    return (
        coefficients,
        np.linalg.pinv(matrix.T @ matrix),
        float(residual @ residual) / max(1, len(values) - rank),
        rank,
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_more_rows_and_missing_seeds_are_least_squares_with_seeds_as_blocks(n: int, seeds: int, draw: int) -> None:
    rng = np.random.default_rng(draw)
    scores = {row: {seed: float(rng.normal()) for seed in range(seeds)} for row in range(n)}
    for row in range(1, n):
        # Row 0 stays complete, so that every row is joined to it by some seed.
        if seeds > 1 and rng.random() < 0.5:
            del scores[row][int(rng.integers(seeds))]
    model = SeedModel.fit(scores)
    coefficients, inverse, variance, rank = by_least_squares(scores)
    df = sum(map(len, scores.values())) - rank
    assert (model.df if model else 0) == df
    if model:
        weights = np.zeros(len(coefficients))
        weights[0], weights[n - 1] = 1.0, -1.0
        estimate = model.contrast({0: 1.0, n - 1: -1.0})
        assert estimate
        assert estimate.value == pytest.approx(weights @ coefficients, abs=1e-9)
        assert estimate.error == pytest.approx(sqrt(max(0, variance * (weights @ inverse @ weights))), abs=1e-7)


def test_rows_that_no_seed_joins_cannot_be_compared() -> None:
    scores = {0: {0: 1.0, 1: 2.0}, 1: {0: 1.5, 1: 2.6}, 2: {7: 9.0, 8: 9.5}, 3: {7: 9.1, 8: 9.9}}
    model = SeedModel.fit(scores)
    assert model and model.df == 2
    assert model.contrast({0: 1.0, 1: -1.0}) and model.contrast({2: 1.0, 3: -1.0})
    assert model.contrast({0: 1.0, 2: -1.0}) is None
    assert model.contrast({0: 1.0, 99: -1.0}) is None


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_all_pairs_at_once_are_as_one_by_one(n: int, draw: int) -> None:
    rng = np.random.default_rng(draw)
    # Sparse enough that some rows are joined through others only, and some not at all.
    scores = {row: {seed: float(rng.normal()) for seed in range(8) if rng.random() < 0.4} for row in range(n)}
    model = SeedModel.fit({row: by_seed for row, by_seed in scores.items() if by_seed})
    if model:
        one_by_one = [model.contrast({a: 1.0, b: -1.0}) for a, b in combinations(model.rows, 2)]
        expected = [nan if one is None else one.p for one in one_by_one]
        assert model.p_pairs(model.rows).tolist() == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_pairs_of_rows_that_are_the_same_or_never_scatter() -> None:
    model = SeedModel.fit(rows(A, A))
    assert model and model.p_pairs(model.rows).tolist() == [1.0]
    model = SeedModel.fit(rows([1.0, 2.0], [2.0, 3.0]))
    assert model and model.p_pairs(model.rows).tolist() == pytest.approx([0.0], abs=1e-6)


def test_one_seed_leaves_no_error_to_estimate() -> None:
    assert SeedModel.fit(rows([1.0], [2.0])) is None
    assert SeedModel.fit({}) is None
    assert paired({0: 1.0, 1: 2.0}, {1: 2.0, 2: 3.0}) is None


def test_large_scores_lose_no_precision() -> None:
    shifted = SeedModel.fit(rows([a + 1e9 for a in A], [b + 1e9 for b in B]))
    plain = SeedModel.fit(rows(A, B))
    assert shifted and plain and shifted.sd == pytest.approx(plain.sd, rel=1e-4)


def test_equal_runs_differ_by_nothing_with_certainty() -> None:
    model = SeedModel.fit(rows(A, A))
    estimate = model and model.contrast({0: 1.0, 1: -1.0})
    assert estimate and (estimate.value, estimate.p, estimate.p_equivalent(0.1)) == (0.0, 1.0, 0.0)
    apart = SeedModel.fit(rows([1.0, 2.0], [2.0, 3.0]))
    estimate = apart and apart.contrast({0: 1.0, 1: -1.0})
    assert estimate and estimate.p == pytest.approx(0.0, abs=1e-6)


def test_the_effect_is_hedges() -> None:
    """With 8 degrees of freedom the correction is 0.9027 (Hedges 1981, Table 2: J(8) = 0.9027)."""
    assert Estimate(2.0, 0.5, 8, 1.0).effect == pytest.approx(2 * 0.9027, abs=1e-4)
    assert Estimate(2.0, 0.0, 8, 0.0).effect == inf
    assert isnan(Estimate(2.0, 0.5, 1, 1.0).effect)


@pytest.mark.parametrize("df", [1, 4, 20, 400])
def test_a_detectable_difference_is_seen_four_times_in_five(df: int) -> None:
    bound = stats.t.ppf(0.975, df)
    shift = optimize.brentq(lambda nc: stats.nct.sf(bound, df, nc) - 0.8, 0.1, 200)
    assert Estimate(0.0, 0.3, df, 1.0).detectable() == pytest.approx(0.3 * shift, rel=1e-4)


@pytest.mark.parametrize("df", [2, 10, 400])
def test_with_many_comparisons_only_a_larger_difference_is_seen(df: int) -> None:
    bound = stats.t.isf(0.025 / 30, df)
    shift = optimize.brentq(lambda nc: stats.nct.sf(bound, df, nc) - 0.8, 0.1, 200)
    assert Estimate(0.0, 0.3, df, 1.0).detectable(30) == pytest.approx(0.3 * shift, rel=1e-4)


def test_seeds_to_show_a_difference_are_enough_and_one_less_is_not() -> None:
    estimate = Estimate(0.5, 0.4, 2, 0.5)
    seeds = estimate.seeds_to_show(0.0, inf, 3)
    assert seeds is not None and seeds > 3

    def needed(n: int) -> float:
        df = 2 * (n - 1) / 2
        return float(stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df)) * 0.4 * sqrt(3 / n)

    assert needed(seeds) <= 0.5 < needed(seeds - 1)
    assert estimate.seeds_to_show(-inf, 1.0, 3) == seeds
    assert estimate.seeds_to_show(0.5 - 1e-9, inf, 3) is None
    assert estimate.seeds_to_show(-1.0, 0.4, 3) is None
    assert Estimate(0.5, 0.0, 2, 0.0).seeds_to_show(0.0, inf, 3) == 3


def test_seeds_to_show_equivalence_keep_both_ends_within_the_margin() -> None:
    """Simulated: with so many seeds, both ends of the 90% interval are within ±1 four times in five."""
    n, df, sd = 4, 12, 1.5
    seeds = Estimate(0.2, sd * sqrt(2 / n), df, sd).seeds_to_show(-1.0, 1.0, n, level=0.9)
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
