"""What runs say of a contrast, against Welch's t and Barnard's test by scipy and values worked by hand."""

from math import inf, log, nan, sqrt

import numpy as np
import pytest
from claimed import (
    EXP,
    FAILS,
    HOLDS,
    KERNELS,
    LOSS,
    PARTS,
    RBF,
    UNKNOWN,
    UNTESTED,
    claim,
    contrast,
    diverged,
    finding,
    kernels,
    known,
    of_runs,
    only,
    welch,
)
from scipy import stats
from sweeps import run, seeded

from kdx.report.papers.verdicts import ContrastOutcome, Verdict
from kdx.store.records import RunRecord, RunState


def test_two_cells_are_compared_by_their_own_spreads() -> None:
    outcome = only(contrast(), RBF, EXP)
    value, error, df = welch([(1, RBF), (-1, EXP)])
    test = stats.ttest_ind(RBF, EXP, equal_var=False)
    assert value / error == pytest.approx(test.statistic) and df <= test.df
    assert outcome.estimate and outcome.estimate.value == pytest.approx(0.65) and outcome.cells.n == 4
    assert outcome.interval == pytest.approx(stats.t(df, value, error).interval(0.9)), "it decides with 5% at one end"
    assert outcome.verdict is UNKNOWN and test.pvalue > 0.05
    assert [[cell.id for cell in side] for side in (outcome.cells.a, outcome.cells.b)] == [["rbf"], ["exponential"]]


@pytest.mark.parametrize(
    ("expect", "margin", "a", "verdict"),
    [
        # b is 10, 10.1, 10.2: the differences are 2 and −2, and half of their 95% interval 0.227, of their 90% 0.174.
        # One end decides `better` and `no-worse` with 5%, and either end may decide that two are not equivalent.
        ("better", None, [12.0, 12.1, 12.2], HOLDS),
        ("better", 1.82, [12.0, 12.1, 12.2], HOLDS),
        ("better", 1.83, [12.0, 12.1, 12.2], UNKNOWN),
        ("better", 2.18, [12.0, 12.1, 12.2], FAILS),
        ("better", None, [8.0, 8.1, 8.2], FAILS),
        ("no-worse", 2.18, [8.0, 8.1, 8.2], HOLDS),
        ("no-worse", 2.17, [8.0, 8.1, 8.2], UNKNOWN),
        ("no-worse", 1.82, [8.0, 8.1, 8.2], FAILS),
        ("equivalent", 2.18, [12.0, 12.1, 12.2], HOLDS),
        ("equivalent", 2.17, [12.0, 12.1, 12.2], UNKNOWN),
        ("equivalent", 1.77, [12.0, 12.1, 12.2], FAILS),
    ],
)
def test_what_is_decided_by_where_the_interval_lies(
    expect: str, margin: float | None, a: list[float], verdict: Verdict
) -> None:
    values, b = contrast(expect=expect, margin=margin), [10.0, 10.1, 10.2]
    assert only(values, a, b).verdict is verdict
    # A loss is better below.
    down = only(values, [-each for each in a], [-each for each in b], **LOSS)
    assert down.verdict is verdict and down.estimate and down.estimate.value == pytest.approx(np.mean(a) - 10.1)


def test_a_margin_may_be_a_share_of_the_other_side() -> None:
    """A difference of 0.2, with half of its 90% interval 0.17, is within 4% of 10.1, but not within 3%."""
    sides = [10.2, 10.3, 10.4], [10.0, 10.1, 10.2]
    for share, verdict in (("4%", HOLDS), ("3%", UNKNOWN)):
        outcome = only(contrast(expect="equivalent", margin=share), *sides)
        assert outcome.cells.margin == pytest.approx(float(share[:-1]) / 100 * 10.1)
        assert outcome.verdict is verdict
    absolute = only(contrast(expect="equivalent", margin=0.4), *sides)
    assert (absolute.cells.margin, absolute.verdict) == (0.4, HOLDS)


def test_perplexities_are_compared_in_nats_and_so_are_their_margins() -> None:
    a, b = [4.0, 4.02, 4.04], [4.1, 4.12, 4.14]
    value, error, df = welch([(1, [*np.log(b)]), (-1, [*np.log(a)])])
    for scale in (1, 100):
        sides = [x * scale for x in a], [x * scale for x in b]
        outcome = only(contrast(expect="equivalent", margin="4%"), *sides, task="prediction")
        assert outcome.estimate and outcome.estimate.value == pytest.approx(value)
        assert (outcome.estimate.error, outcome.estimate.df) == pytest.approx((error, df))
        assert outcome.cells.margin == pytest.approx(log(1.04)) and outcome.verdict is HOLDS
        absolute = only(contrast(expect="equivalent", margin=0.165 * scale), *sides, task="prediction")
        assert absolute.cells.margin == pytest.approx(log(1 + 0.165 / 4.12))


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_score_that_is_not_finite_counts_as_diverged(bad: float) -> None:
    outcome = only(contrast(), [*RBF, bad], [*EXP, 30.0])
    assert (outcome.cells.n, outcome.estimate, outcome.cells.diverged, outcome.cells.ended) == (4, None, (1, 0), (5, 5))
    assert outcome.verdict is UNKNOWN and outcome.rates
    lost = of_runs("better", [*seeded("rbf", bad, bad, bad)], [*seeded("exponential", *EXP)])
    as_diverged = of_runs("better", diverged("rbf", 3), [*seeded("exponential", *EXP)])
    assert lost.verdict is as_diverged.verdict is FAILS and lost.rates == as_diverged.rates


def test_one_seed_tells_nothing() -> None:
    outcome = only(contrast(), [31.0], [29.0])
    assert (outcome.verdict, outcome.estimate, outcome.interval) == (UNKNOWN, None, None)
    assert (outcome.cells.n, outcome.more, outcome.reason) == (1, 1, "a cell has a single seed")
    others = only(contrast(), RBF, [29.0])
    assert (others.estimate, others.cells.n, others.more) == (None, 1, 1)


@pytest.mark.parametrize(
    ("expect", "a", "b", "verdict"),
    [
        ("better", 0, 3, HOLDS),
        ("better", 3, 0, FAILS),
        ("no-worse", 0, 3, HOLDS),
        ("no-worse", 3, 0, FAILS),
        ("equivalent", 0, 3, FAILS),
        ("equivalent", 3, 0, FAILS),
        ("better", 3, 3, UNKNOWN),
        ("equivalent", 3, 3, UNKNOWN),
    ],
)
def test_a_side_that_diverges_is_worse(expect: str, a: int, b: int, verdict: Verdict) -> None:
    """Three of three against none: p = 0.031 by Barnard's test."""
    outcome = of_runs(expect, diverged("rbf", a, 3), diverged("exponential", b, 3), margin=0.3)
    assert (outcome.verdict, outcome.cells.diverged, outcome.cells.ended) == (verdict, (a, b), (3, 3))
    assert outcome.estimate is None and outcome.reason == ""
    if verdict is UNKNOWN:
        assert outcome.more is None
    else:
        low, high = stats.binomtest(3, 3).proportion_ci(method="wilson")
        # Newcombe's: 1 − √((1 − 0.438)² + (0.562 − 0)²), and both rates are at their ends.
        edge = 1 - sqrt(2) * (1 - low)
        assert high == 1.0
        assert outcome.rates == pytest.approx((edge, 1.0) if b else (-1.0, -edge))


def test_rates_that_are_one_of_two_chances_have_to_be_further_apart() -> None:
    """p = 0.031 is below 5%, but not below the half of it."""
    cells, _ = kernels([], [])
    runs = [*diverged("rbf", 0, 3), *diverged("exponential", 3)]
    assert finding(claim(), cells, runs).verdict is HOLDS
    assert finding(claim(contrast(), PARTS[UNTESTED], any=True), cells, runs).verdict is UNKNOWN
    assert finding(claim(contrast("exponential", "rbf")), cells, runs).verdict is FAILS
    back = finding(claim(contrast("exponential", "rbf"), PARTS[UNTESTED]), cells, runs)
    assert [outcome.verdict for outcome in back.outcomes] == [UNKNOWN, UNTESTED]


def test_rates_that_say_nothing_leave_it_to_the_scores_of_the_others() -> None:
    a = [run("rbf", seed, score, score, id=seed) for seed, score in enumerate([20.0, 21.0, 22.1])]
    b = diverged("exponential", 1, 4)
    outcome = of_runs("better", a, b)
    assert outcome.rates and outcome.rates[0] <= 0 <= outcome.rates[1]
    assert outcome.verdict is HOLDS and outcome.cells.n == 3 and outcome.estimate


@pytest.mark.parametrize(
    ("expect", "a", "b", "verdict"),
    [
        # Those that completed are 10 apart, or equal.
        ("better", (2, 20.0), (0, 10.0), UNKNOWN),
        ("better", (0, 20.0), (2, 10.0), HOLDS),
        ("better", (2, 20.0), (2, 10.0), HOLDS),
        ("better", (0, 10.0), (2, 20.0), UNKNOWN),
        ("better", (2, 10.0), (0, 20.0), FAILS),
        ("no-worse", (2, 20.0), (0, 10.0), UNKNOWN),
        ("no-worse", (2, 10.0), (2, 10.0), HOLDS),
        ("equivalent", (2, 10.0), (0, 10.0), UNKNOWN),
        ("equivalent", (0, 10.0), (2, 10.0), UNKNOWN),
        ("equivalent", (2, 10.0), (2, 10.0), HOLDS),
    ],
)
def test_survivors_alone_decide_nothing_for_the_side_that_diverged_more(
    expect: str, a: tuple[int, float], b: tuple[int, float], verdict: Verdict
) -> None:
    """Two of five against none is not told apart from chance."""

    def runs(first: int, lost: int, score: float) -> list[RunRecord]:
        noise = [0.1, -0.1, 0.05, 0.0, 0.1]
        kernel = KERNELS[first]
        return [
            run(kernel, seed, state=RunState.DIVERGED, id=10 * first + seed)
            if seed < lost
            else run(kernel, seed, 1.0, score + noise[seed], id=10 * first + seed)
            for seed in range(5)
        ]

    outcome = of_runs(expect, runs(0, *a), runs(1, *b), margin=1.0)
    assert outcome.rates and outcome.rates[0] <= 0 <= outcome.rates[1]
    assert outcome.verdict is verdict
    if verdict is UNKNOWN:
        assert outcome.reason.startswith("one side diverged more often") and outcome.more and outcome.more > 1


def test_more_runs_would_tell_rates_apart() -> None:
    """All of a diverge, and two in three of b."""

    def after(more: int) -> ContrastOutcome:
        n = 3 + more
        return of_runs("better", diverged("rbf", n), diverged("exponential", round(2 / 3 * n), n))

    now = after(0)
    assert (now.verdict, now.estimate) == (UNKNOWN, None)
    fewest = next(more for more in range(1, 50) if after(more).verdict is FAILS)
    assert now.more and fewest <= now.more <= 1.25 * fewest + 1, "found in steps that grow"
    assert after(now.more).verdict is FAILS


def test_what_is_decided_alone_may_not_be_told_as_one_of_two_chances() -> None:
    a, b = [10.9, 11.7, 12.5], [9.4, 10.0, 10.7]
    value, error, df = welch([(1, a), (-1, b)])
    assert 0.025 < stats.t.sf(value / error, df) < 0.05
    assert only(contrast(), a, b).verdict is HOLDS
    assert finding(claim(contrast(), PARTS[UNTESTED], any=True), *kernels(a, b)).verdict is UNKNOWN
    assert only(contrast(), b, a).verdict is FAILS
    (first, _) = finding(claim(contrast(), PARTS[UNTESTED]), *kernels(b, a)).outcomes
    assert first.verdict is UNKNOWN, "nor that a part of all does not hold"
    (first, _) = finding(claim(contrast(), PARTS[UNTESTED]), *kernels(a, b)).outcomes
    assert first.verdict is HOLDS, "all have to hold, so none needs a correction"


def enough(low: float, high: float, outcome: ContrastOutcome, level: float) -> int:
    """The first number of seeds with which the interval is between the bounds four times in five."""
    assert outcome.estimate
    value, error, df, n = outcome.estimate.value, outcome.estimate.error, outcome.estimate.df, outcome.cells.n
    for seeds in range(2, 10_000):
        t = stats.t(max(1, df * (seeds - 1) / (n - 1)))
        scale = error * sqrt(n / seeds)
        half = t.ppf((1 + level) / 2) * scale
        if t.sf((low + half - value) / scale) - t.sf((high - half - value) / scale) >= 0.8:
            return seeds
    raise AssertionError


def test_how_many_more_seeds_would_decide() -> None:
    outcome = only(contrast(), RBF, EXP)
    assert outcome.verdict is UNKNOWN and outcome.more == enough(0.0, inf, outcome, 0.9) - 4
    equal = only(contrast(expect="equivalent", margin=1.0), RBF, EXP)
    # It is within the margin, so seeds would show that, not the contrary.
    assert equal.more == enough(-1.0, 1.0, equal, 0.9) - 4
    apart = only(contrast(expect="equivalent", margin=0.1), RBF, EXP)
    assert apart.more == enough(0.1, inf, apart, 0.95) - 4
    no_worse = only(contrast(expect="no-worse", margin=0.3), EXP, RBF)
    assert no_worse.more == enough(-inf, -0.3, no_worse, 0.9) - 4
    chance, _ = finding(claim(contrast(), PARTS[UNTESTED], any=True), *kernels(RBF, EXP)).outcomes
    assert chance.more == enough(0.0, inf, chance, 0.95) - 4
    on_the_bound = only(contrast(), [10.0, 12.0, 11.0], [11.0, 11.0, 11.0])
    assert (on_the_bound.verdict, on_the_bound.more) == (UNKNOWN, None), "no number of seeds decides it"
    decided = finding(claim(PARTS[HOLDS], PARTS[FAILS]), *known())
    assert [each.more for each in decided.outcomes] == [None, None] and decided.more is None


def test_a_claim_may_declare_that_cells_are_paired_by_seed() -> None:
    a, b = [30.0, 32.1, 34.0, 36.2], [29.5, 31.4, 33.6, 35.6]
    assert only(contrast(), a, b).verdict is UNKNOWN
    (outcome,) = finding(claim(pairs="seed"), *kernels(a, b)).outcomes
    test = stats.ttest_rel(a, b)
    assert outcome.verdict is HOLDS and (outcome.cells.n, outcome.level) == (4, pytest.approx(0.9))
    assert outcome.interval == pytest.approx(test.confidence_interval(0.9))


def test_pairs_are_of_the_seeds_that_all_cells_have() -> None:
    cells, runs = kernels([30.0, 32.1, 34.0, 36.2], [29.5, 31.4, 33.6])
    runs += [run("exponential", 7, 50.0, 50.0, id=999)]
    (outcome,) = finding(claim(pairs="seed"), cells, runs).outcomes
    assert outcome.cells.n == 3 and outcome.estimate
    assert outcome.estimate.value == pytest.approx(np.mean([0.5, 0.7, 0.4]))
    apart = [each for each in runs if each.cell_id == "rbf" or each.seed in (0, 7)]
    (outcome,) = finding(claim(pairs="seed"), cells, apart).outcomes
    assert (outcome.verdict, outcome.reason) == (UNKNOWN, "the cells have fewer than two seeds in common")
