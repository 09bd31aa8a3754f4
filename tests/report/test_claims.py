"""What the runs say of a claim, against scipy's paired tests and values worked by hand."""

from dataclasses import replace
from math import inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sweeps import cell, run, seeded, sweep

from kdx.report.claims import Answer, Outcome, Verdict, answer, following
from kdx.report.listings import claim as listing
from kdx.report.papers import Claim, Contrast, Rule, load_paper, shipped
from kdx.store.records import CellRecord, RunRecord, RunState

HOLDS, FAILS, UNKNOWN = Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.CANNOT_TELL
RBF, EXP = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0]
KERNELS = ("rbf", "exponential", "polynomial", "linear")


def contrast(a: str = "rbf", b: str = "exponential", expect: str = "better", **rest: object) -> Contrast:
    """Kernel a against kernel b."""
    return Contrast.model_validate({"a": {"kernel": a}, "b": {"kernel": b}, "expect": expect, **rest})


def claim(*parts: Contrast | Rule, any: bool = False) -> Claim:
    return Claim("id", "It works.", "", Rule(any, parts or (contrast(),)))


def kernels(
    *scores: list[float], task: str = "translation", **choices: object
) -> tuple[list[CellRecord], list[RunRecord]]:
    """A cell for each list of scores, of seeds 0, 1, …; the kernels come in the order of `KERNELS`."""
    used = list(zip(KERNELS, scores, strict=False))
    tail = "".join(str(word) for word in choices.values())
    return (
        [cell(kernel + tail, task, kernel=kernel, **choices) for kernel, _ in used],
        [one for kernel, its in used for one in seeded(kernel + tail, *its)],
    )


def told(its: Claim, cells: list[CellRecord], runs: list[RunRecord]) -> Answer:
    return answer(its, [sweep(cells, runs)])


def only(its: Contrast, *scores: list[float], **choices: object) -> Outcome:
    """The outcome of a claim of one contrast in one setting."""
    (found,) = told(claim(its), *kernels(*scores, **choices)).outcomes
    return found


def diverged(kernel: str, seeds: int, of: int | None = None, score: float = 1.0) -> list[RunRecord]:
    """Of so many seeds of a cell the first ones diverged."""
    of = seeds if of is None else of
    first = 100 * (1 + KERNELS.index(kernel))
    return [
        run(kernel, seed, state=RunState.DIVERGED, id=first + seed)
        if seed < seeds
        else run(kernel, seed, score, score, id=first + seed)
        for seed in range(of)
    ]


def of_runs(expect: str, a: list[RunRecord], b: list[RunRecord], **rest: object) -> Outcome:
    cells, _ = kernels([], [])
    (found,) = told(claim(contrast(expect=expect, **rest)), cells, [*a, *b]).outcomes
    return found


def test_two_cells_are_the_paired_t_test() -> None:
    found = only(contrast(), RBF, EXP)
    test = stats.ttest_rel(RBF, EXP)
    interval = test.confidence_interval(0.95)
    assert found.estimate and found.estimate.value == pytest.approx(0.65) and found.n == 4
    assert found.interval == pytest.approx((interval.low, interval.high))
    assert found.verdict is UNKNOWN and test.pvalue > 0.05
    assert (found.a, found.b) == (("rbf",), ("exponential",))


@pytest.mark.parametrize(
    ("expect", "margin", "a", "verdict"),
    [
        # b is 10, 11, 12: the differences are 2, 2.1, 2.2, and half of their 95% interval 0.248, of their 90% 0.169.
        ("better", None, [12.0, 13.1, 14.2], HOLDS),
        ("better", 1.84, [12.0, 13.1, 14.2], HOLDS),
        ("better", 1.86, [12.0, 13.1, 14.2], UNKNOWN),
        ("better", 2.4, [12.0, 13.1, 14.2], FAILS),
        ("better", None, [8.0, 8.9, 9.8], FAILS),
        ("better", None, [9.0, 11.1, 13.0], UNKNOWN),
        ("no-worse", 0.1, [12.0, 13.1, 14.2], HOLDS),
        ("no-worse", 2.28, [8.0, 8.9, 9.8], HOLDS),
        ("no-worse", 2.26, [8.0, 8.9, 9.8], UNKNOWN),
        ("no-worse", 1.86, [8.0, 8.9, 9.8], UNKNOWN),
        ("no-worse", 1.84, [8.0, 8.9, 9.8], FAILS),
        ("equivalent", 2.28, [12.0, 13.1, 14.2], HOLDS),
        ("equivalent", 2.26, [12.0, 13.1, 14.2], UNKNOWN),
        ("equivalent", 1.86, [12.0, 13.1, 14.2], UNKNOWN),
        ("equivalent", 1.84, [12.0, 13.1, 14.2], FAILS),
        ("equivalent", 2.28, [8.0, 8.9, 9.8], HOLDS),
        ("equivalent", 1.84, [8.0, 8.9, 9.8], FAILS),
    ],
)
def test_what_is_decided_by_where_the_interval_lies(
    expect: str, margin: float | None, a: list[float], verdict: Verdict
) -> None:
    its = contrast(expect=expect, margin=margin)
    assert only(its, a, [10.0, 11.0, 12.0]).verdict is verdict
    # A perplexity is better below.
    down = only(its, [-one for one in a], [-10.0, -11.0, -12.0], task="prediction")
    assert down.verdict is verdict and down.estimate and down.estimate.value == pytest.approx(np.mean(a) - 11)


seeds = st.integers(0, 10**6).map(
    lambda draw: np.random.default_rng(draw).normal([[0.0], [0.4]], 0.5, (2, 4)).round(3).tolist()
)


@settings(deadline=None, max_examples=80)
@given(seeds, st.sampled_from(["better", "no-worse", "equivalent"]), st.sampled_from([0.1, 0.5, 1.0, 2.0]))
def test_every_verdict_is_that_of_one_sided_t_tests(scores: list[list[float]], expect: str, margin: float) -> None:
    difference = np.subtract(*scores)

    def above(bound: float) -> float:
        return float(stats.ttest_1samp(difference, bound, alternative="greater").pvalue)

    def below(bound: float) -> float:
        return float(stats.ttest_1samp(difference, bound, alternative="less").pvalue)

    holds, fails = {
        "better": (above(margin) < 0.025, below(margin) < 0.025),
        "no-worse": (above(-margin) < 0.05, below(-margin) < 0.025),
        "equivalent": (max(above(-margin), below(margin)) < 0.05, min(above(margin), below(-margin)) < 0.025),
    }[expect]
    verdict = only(contrast(expect=expect, margin=margin), *scores).verdict
    assert verdict is (HOLDS if holds else FAILS if fails else UNKNOWN)


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_the_other_way_round_the_other_side_is_better(scores: list[list[float]]) -> None:
    there, back = only(contrast(), *scores), only(contrast(), *scores[::-1])
    assert back.verdict is {HOLDS: FAILS, FAILS: HOLDS, UNKNOWN: UNKNOWN}[there.verdict]
    assert there.estimate and back.estimate
    assert there.estimate.value == pytest.approx(-back.estimate.value, abs=1e-12)
    assert there.more == back.more


def residual_variance(rows: np.ndarray) -> tuple[float, int]:
    """Of cells × seeds, all there: what neither the cell's mean nor the seed's explains."""
    residual = rows - rows.mean(1, keepdims=True) - rows.mean(0, keepdims=True) + rows.mean()
    df = (rows.shape[0] - 1) * (rows.shape[1] - 1)
    return float((residual**2).sum()) / df, df


def test_the_error_is_pooled_over_all_cells_of_the_setting() -> None:
    poly = [20.0, 22.0, 19.5, 20.5]
    both = claim(contrast(), contrast(b="polynomial"))
    first, second = told(both, *kernels(RBF, EXP, poly)).outcomes
    assert told(claim(), *kernels(RBF, EXP, poly)).outcomes == (first,), "whether the claim speaks of them or not"
    variance, df = residual_variance(np.array([RBF, EXP, poly]))
    for found, value in ((first, 0.65), (second, np.mean(RBF) - np.mean(poly))):
        assert found.estimate and (found.estimate.df, found.estimate.value) == (df, pytest.approx(value))
        assert found.estimate.error == pytest.approx(sqrt(variance * 2 / 4))


def test_three_seeds_decide_with_the_error_of_other_cells_what_they_do_not_alone() -> None:
    """DESIGN: three seeds alone decide nothing."""
    a, b = [30.0, 31.0, 31.2], [28.6, 30.6, 30.1]
    steady = [[20.0, 20.9, 21.0], [10.0, 10.9, 11.1]]
    assert only(contrast(), a, b).verdict is UNKNOWN
    found = only(contrast(), a, b, *steady)
    variance, df = residual_variance(np.array([a, b, *steady]))
    assert found.verdict is HOLDS and found.estimate and (found.pooled, found.estimate.df, df) == (4, 6, 6)
    assert found.estimate.error == pytest.approx(sqrt(variance * 2 / 3))


def test_a_cell_of_another_setting_tells_nothing_of_the_error() -> None:
    cells, runs = kernels(RBF, EXP)
    other = cell("other", kernel="linear", training={"steps": 10})
    by_loss = cell("by-loss", kernel="linear", select={"metric": "valid/loss"})
    more = [*cells, other, by_loss]
    wild = [one for id in ("other", "by-loss") for one in seeded(id, 0.0, 50.0, 0.0, 50.0)]
    assert told(claim(), more, [*runs, *wild]).outcomes == told(claim(), cells, runs).outcomes


def test_cells_that_spread_unequally_are_told() -> None:
    found = only(contrast(), RBF, EXP, [0.0, 50.0, 0.0, 50.0])
    assert found.unequal is not None and found.unequal < 0.001
    (remark,) = (
        one for one in listing(told(claim(), *kernels(RBF, EXP, [0.0, 50.0, 0.0, 50.0]))).notes if "Beware" in one
    )
    assert remark.startswith("Beware: the 3 cells of translation, synthetic, width 128, steps 1000 spread unequally")


def test_what_the_contrast_does_not_name_is_averaged_over() -> None:
    rows = np.array([RBF, EXP, [31.0, 31.0, 30.0, 31.5], [28.0, 29.9, 28.5, 30.0]])
    parts = [kernels(*rows[:2].tolist(), norm="post"), kernels(*rows[2:].tolist(), norm="pre")]
    cells, runs = ([one for part in parts for one in part[index]] for index in (0, 1))
    (found,) = told(claim(), cells, runs).outcomes
    variance, df = residual_variance(rows)
    assert found.over == ("norm",) and found.also == ()
    assert len(found.a) == len(found.b) == 2
    assert found.estimate and found.estimate.df == df == 9
    assert found.estimate.value == pytest.approx((0.65 + rows[2].mean() - rows[3].mean()) / 2)
    # Four cells of four seeds, each with the weight ½.
    assert found.estimate.error == pytest.approx(sqrt(variance * 4 * 0.25 / 4))


def test_sides_that_differ_in_what_is_not_named_are_not_compared() -> None:
    cells = [cell("rbf", kernel="rbf", norm="pre"), cell("exponential", kernel="exponential", norm="post")]
    found = told(claim(), cells, [*seeded("rbf", *RBF), *seeded("exponential", *EXP)])
    assert found.verdict is UNKNOWN
    assert [(one.reason, one.metric, one.n) for one in found.outcomes] == [("no such cells", None, 0)]


def test_where_limits_both_sides() -> None:
    parts = [kernels(RBF, EXP, norm="post"), kernels(EXP, RBF, norm="pre")]
    cells, runs = ([one for part in parts for one in part[index]] for index in (0, 1))
    (found,) = told(claim(contrast(where={"norm": "pre"})), cells, runs).outcomes
    assert (found.a, found.over) == (("rbfpre",), ())
    assert found.estimate and found.estimate.value == pytest.approx(-0.65)


@pytest.mark.parametrize(
    "other",
    [
        {"model": {"width": 64, "heads": 2}},
        {"data": {"corpus": "other"}},
        {"training": {"steps": 10}},
        {"select": {"metric": "valid/loss"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_cells_of_another_setting_are_compared_among_themselves(other: dict[str, object]) -> None:
    here, there = kernels(RBF, EXP), kernels(*[[x / 2 for x in side] for side in (EXP, RBF)], **other)
    cells, runs = ([*one, *two] for one, two in zip(here, there, strict=True))
    found = told(claim(), cells, runs)
    assert [len(one.a) for one in found.outcomes] == [1, 1]
    assert [one.estimate and one.estimate.df for one in found.outcomes] == [3, 3]
    first, second = (one.estimate.value for one in found.outcomes if one.estimate)
    assert first == pytest.approx(0.65)
    # Of a loss, less is better.
    assert second == pytest.approx(0.325 if "select" in other else -0.325)


def test_a_claim_holds_in_every_setting_or_not_at_all() -> None:
    good, bad = ([20.0, 21.1, 22.0], [10.0, 11.0, 12.1]), ([10.0, 11.0, 12.1], [20.0, 21.1, 22.0])
    here = kernels(*good)
    for scores, verdict in ((good, HOLDS), (bad, FAILS), (([1.0], [2.0]), UNKNOWN)):
        there = kernels(*scores, training={"steps": 10})
        found = told(claim(), [*here[0], *there[0]], [*here[1], *there[1]])
        assert [one.verdict for one in found.outcomes] == [HOLDS, verdict]
        assert found.verdict is verdict
        assert [one.setting["training.steps"] for one in found.outcomes] == ["1000", "10"]


def test_a_setting_tells_task_corpus_width_and_steps_unless_they_are_compared() -> None:
    setting = only(contrast(), RBF, EXP).setting
    assert setting == {
        "task": "translation",
        "data.corpus": "synthetic",
        "model.width": "128",
        "training.steps": "1000",
    }
    by_width = Contrast.model_validate({"a": {"model.width": 256}, "b": {"model.width": 128}, "expect": "better"})
    cells = [cell(f"w{width}", model={"width": width}) for width in (128, 256)]
    (found,) = told(claim(by_width), cells, [*seeded("w128", *EXP), *seeded("w256", *RBF)]).outcomes
    assert "model.width" not in found.setting
    assert found.estimate and found.estimate.value == pytest.approx(0.65)


def test_what_a_choice_brings_with_it_may_differ_and_is_told() -> None:
    """A look-up has no encoding, and here its placement is another one than the product's."""
    by_position = Contrast.model_validate(
        {"a": {"position": "product"}, "b": {"position": "lookup"}, "expect": "better"}
    )
    cells = [cell("product", position=["product"]), cell("lookup", position=["lookup"])]
    (found,) = told(claim(by_position), cells, [*seeded("product", *RBF), *seeded("lookup", *EXP)]).outcomes
    assert found.also == ("placement",) and found.over == ()
    cells = [*cells, cell("c", position=["lookup"], clip=4)]
    (found,) = told(
        claim(by_position), cells, [*seeded("product", *RBF), *seeded("lookup", *EXP), *seeded("c", *EXP)]
    ).outcomes
    assert found.over == ("clip",) and len(found.b) == 2


def test_what_follows_from_a_factor() -> None:
    assert "clip" in following(["position"]) and "kernel" not in following(["position"])
    assert following([]) == following(["kernel"]) == frozenset()


def test_only_seeds_with_a_score_on_both_sides_are_told_as_n() -> None:
    found = only(contrast(), RBF, EXP[:2])
    assert found.n == 2
    # Only the two pairs tell: 0.6 and 1.2.
    assert found.estimate and found.estimate.value == pytest.approx(0.9) and found.estimate.df == 1


def test_scores_that_are_no_numbers_are_left_out() -> None:
    found = only(contrast(), [*RBF, nan], [*EXP, 30.0])
    assert found.n == 4 and found.estimate and found.estimate.value == pytest.approx(0.65)
    assert found.ended == (5, 5)
    assert only(contrast(), [nan, inf], EXP).reason == "no such cells"


def test_one_seed_tells_nothing_unless_others_tell_the_error() -> None:
    found = only(contrast(), [31.0], [29.0])
    assert (found.verdict, found.estimate, found.interval, found.reason) == (
        UNKNOWN,
        None,
        None,
        "too few seeds in common",
    )
    assert (found.n, found.more) == (1, 1)
    both = claim(contrast("polynomial", "linear"), contrast())
    pooled = told(both, *kernels([31.0], [29.0], RBF, EXP)).outcomes[1]
    assert pooled.estimate and pooled.estimate.df == 3 and pooled.n == 1


def test_without_a_common_seed_two_more_are_needed() -> None:
    cells, _ = kernels([], [])
    runs = [run("rbf", 0, 1.0, 1.0, id=1), run("exponential", 1, 1.0, 1.0, id=2)]
    (found,) = told(claim(), cells, runs).outcomes
    assert (found.n, found.estimate, found.more) == (0, None, 2)


def test_cells_joined_only_by_others_are_compared_through_them() -> None:
    """Seeds 0 and 1 join rbf to the polynomial kernel, 2 and 3 the exponential one."""
    cells, _ = kernels([], [], [])
    runs = [
        *(run("rbf", seed, score, score, id=seed) for seed, score in enumerate([5.0, 6.1])),
        *(run("exponential", 2 + seed, score, score, id=10 + seed) for seed, score in enumerate([3.0, 4.1])),
        *(run("polynomial", seed, score, score, id=20 + seed) for seed, score in enumerate([1.0, 2.0, 1.0, 2.0])),
    ]
    through = told(claim(contrast(), contrast("rbf", "polynomial"), contrast("exponential", "polynomial")), cells, runs)
    first = through.outcomes[0]
    assert first.n == 0 and first.estimate and first.estimate.value == pytest.approx(2.0)
    assert first.more is None or first.more >= 1


def test_no_runs_are_no_cells() -> None:
    cells, _ = kernels([], [])
    waiting = [run(each.id, 0, state=RunState.PENDING, id=index) for index, each in enumerate(cells)]
    for found in (answer(claim(), []), told(claim(), cells, []), told(claim(), cells, waiting)):
        assert (found.verdict, found.more) == (UNKNOWN, None)
        assert [(one.reason, one.more, one.setting) for one in found.outcomes] == [("no such cells", None, {})]


def test_a_cell_of_several_sweeps_counts_once_with_the_runs_of_all() -> None:
    cells, runs = kernels(RBF, EXP)
    first, second = sweep(cells, runs[:6]), sweep(cells, [*runs[4:]])
    assert answer(claim(), [first, second]).outcomes == told(claim(), cells, runs).outcomes


def test_another_metric_may_decide() -> None:
    cells = [cell("rbf", kernel="rbf"), cell("exponential", kernel="exponential")]
    runs = [run("rbf", seed, 5.0 + seed, 1.0, id=seed) for seed in range(3)]
    runs += [run("exponential", seed, 1.1 * seed, 9.0, id=10 + seed) for seed in range(3)]
    assert told(claim(contrast(metric="valid/bleu")), cells, runs).verdict is HOLDS
    metrics = {one.id: {"test/perplexity": 9.0 + (one.id % 10) * (1.1 if one.id < 10 else 1.0)} for one in runs}
    (found,) = answer(claim(contrast(metric="perplexity")), [sweep(cells, runs, metrics=metrics)]).outcomes
    assert found.metric and found.metric.name == "perplexity"
    assert found.estimate and found.estimate.value == pytest.approx(-0.1)
    assert told(claim(contrast(metric="word_perplexity")), cells, runs).outcomes[0].reason == "no such cells"


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
    found = of_runs(expect, diverged("rbf", a, 3), diverged("exponential", b, 3), margin=0.3)
    assert (found.verdict, found.diverged, found.ended) == (verdict, (a, b), (3, 3))
    assert found.estimate is None and found.reason == ""
    if verdict is UNKNOWN:
        assert found.more is None
    else:
        low, high = stats.binomtest(3, 3).proportion_ci(method="wilson")
        # Newcombe's: 1 − √((1 − 0.438)² + (0.562 − 0)²), and both rates are at their ends.
        edge = 1 - sqrt(2) * (1 - low)
        assert high == 1.0
        assert found.rates == pytest.approx((edge, 1.0) if b else (-1.0, -edge))


def test_two_runs_a_side_do_not_decide_by_divergence() -> None:
    """Of equal rates of ½, two diverge against none in 2 of 16 cases."""
    found = of_runs("better", diverged("rbf", 0, 2), diverged("exponential", 2))
    assert (found.verdict, found.more) == (UNKNOWN, 1)
    assert found.rates and found.rates[0] > 0


def test_rates_that_say_nothing_leave_it_to_the_scores_of_the_others() -> None:
    a = [run("rbf", seed, score, score, id=seed) for seed, score in enumerate([20.0, 21.0, 22.1])]
    b = diverged("exponential", 1, 4)
    found = of_runs("better", a, b)
    assert found.rates and found.rates[0] <= 0 <= found.rates[1]
    assert found.verdict is HOLDS and found.n == 2 and found.estimate


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
            else run(kernel, seed, 1.0, score + seed + first * noise[seed], id=10 * first + seed)
            for seed in range(5)
        ]

    found = of_runs(expect, runs(0, *a), runs(1, *b), margin=1.0)
    assert found.rates and found.rates[0] <= 0 <= found.rates[1]
    assert found.verdict is verdict
    if verdict is UNKNOWN:
        assert found.reason.startswith("one side diverged more often") and found.more and found.more > 1


def test_more_runs_would_tell_rates_apart() -> None:
    """All of a diverge, and two in three of b."""

    def after(more: int) -> Outcome:
        n = 3 + more
        return of_runs("better", diverged("rbf", n), diverged("exponential", round(2 / 3 * n), n))

    now = after(0)
    assert (now.verdict, now.estimate) == (UNKNOWN, None)
    assert now.more and now.more > 1
    assert after(now.more).verdict is FAILS
    low, high = after(now.more - 1).rates or (0, 0)
    assert low <= 0 <= high


def known() -> tuple[list[CellRecord], list[RunRecord]]:
    """rbf is far over exponential, which is as good as polynomial; there is no linear one."""
    return kernels([30.0, 31.1, 32.0], [20.0, 21.0, 22.1], [20.1, 20.9, 22.0])


PARTS = {HOLDS: contrast(), FAILS: contrast("exponential", "rbf"), UNKNOWN: contrast("rbf", "linear")}


@pytest.mark.parametrize(
    ("parts", "all_of", "any_of"),
    [
        ((HOLDS,), HOLDS, HOLDS),
        ((FAILS,), FAILS, FAILS),
        ((UNKNOWN,), UNKNOWN, UNKNOWN),
        ((HOLDS, HOLDS), HOLDS, HOLDS),
        ((HOLDS, FAILS), FAILS, HOLDS),
        ((HOLDS, UNKNOWN), UNKNOWN, HOLDS),
        ((FAILS, UNKNOWN), FAILS, UNKNOWN),
        ((FAILS, FAILS), FAILS, FAILS),
        ((UNKNOWN, FAILS, HOLDS), FAILS, HOLDS),
    ],
)
def test_all_and_any(parts: tuple[Verdict, ...], all_of: Verdict, any_of: Verdict) -> None:
    of = [PARTS[part] for part in parts]
    assert told(claim(*of), *known()).verdict is all_of
    found = told(claim(*of, any=True), *known())
    assert found.verdict is any_of
    assert [one.verdict for one in found.outcomes] == list(parts)


def test_rules_nest() -> None:
    any_of = Rule(True, (PARTS[FAILS], PARTS[HOLDS]))
    assert told(claim(PARTS[HOLDS], any_of), *known()).verdict is HOLDS
    assert told(claim(PARTS[UNKNOWN], any_of), *known()).verdict is UNKNOWN
    all_of = Rule(False, (PARTS[HOLDS], PARTS[FAILS]))
    assert told(claim(all_of, PARTS[FAILS], any=True), *known()).verdict is FAILS


def test_a_claim_with_several_chances_shares_its_five_percent_among_them() -> None:
    def levels(its: Claim) -> list[float]:
        return [one.level for one in told(its, *known()).outcomes]

    one, other = PARTS[HOLDS], PARTS[FAILS]
    assert levels(claim(one, other)) == [0.95, 0.95]
    assert levels(claim(one, other, any=True)) == pytest.approx([0.975, 0.975])
    assert levels(claim(Rule(False, (one, other)), one, any=True)) == pytest.approx([0.975] * 3)
    assert levels(claim(Rule(True, (one, other)), one, any=True)) == pytest.approx([0.9875, 0.9875, 0.975])


def test_what_holds_alone_may_not_be_told_as_one_of_two_chances() -> None:
    a, b = [10.9, 12.0, 13.6], [10.0, 11.0, 12.0]
    assert 0.025 < stats.ttest_rel(a, b).pvalue < 0.05
    assert only(contrast(), a, b).verdict is HOLDS
    assert told(claim(contrast(), PARTS[UNKNOWN], any=True), *kernels(a, b)).verdict is UNKNOWN


def enough(low: float, high: float, found: Outcome, level: float) -> int:
    """The first number of seeds with which the interval is between the bounds four times in five."""
    assert found.estimate
    value, error, df, n = found.estimate.value, found.estimate.error, found.estimate.df, found.n
    for seeds in range(2, 10_000):
        t = stats.t(max(1, df * (seeds - 1) / (n - 1)))
        scale = error * sqrt(n / seeds)
        half = t.ppf((1 + level) / 2) * scale
        if t.sf((low + half - value) / scale) - t.sf((high - half - value) / scale) >= 0.8:
            return seeds
    raise AssertionError


def test_how_many_more_seeds_would_decide() -> None:
    found = only(contrast(), RBF, EXP)
    assert found.verdict is UNKNOWN and found.more == enough(0.0, inf, found, 0.95) - 4
    equal = only(contrast(expect="equivalent", margin=1.0), RBF, EXP)
    # It is within the margin, so seeds would show that, not the contrary.
    assert equal.more == enough(-1.0, 1.0, equal, 0.9) - 4
    apart = only(contrast(expect="equivalent", margin=0.1), RBF, EXP)
    assert apart.more == enough(0.1, inf, apart, 0.95) - 4
    no_worse = only(contrast(expect="no-worse", margin=0.3), EXP, RBF)
    assert no_worse.more == enough(-inf, -0.3, no_worse, 0.95) - 4


def test_no_number_of_seeds_decides_what_lies_on_the_bound() -> None:
    found = only(contrast(), [10.0, 12.0, 11.0], [11.0, 11.0, 11.0])
    assert (found.verdict, found.more) == (UNKNOWN, None)


def test_runs_that_are_the_same_on_both_sides_are_equivalent_and_not_better() -> None:
    assert only(contrast(expect="equivalent", margin=0.1), RBF, RBF).verdict is HOLDS
    assert only(contrast(), [1.0, 1.0], [1.0, 1.0]).verdict is UNKNOWN


def test_what_is_told_needs_no_more_seeds() -> None:
    found = told(claim(PARTS[HOLDS], PARTS[FAILS]), *known())
    assert [one.more for one in found.outcomes] == [None, None]
    assert found.more is None


def test_a_claim_needs_as_many_more_as_its_neediest_part_as_far_as_seeds_can_tell() -> None:
    close = contrast("exponential", "polynomial", expect="equivalent", margin=0.3)
    closer = contrast("exponential", "polynomial", expect="equivalent", margin=0.2)
    found = told(claim(close, closer, PARTS[HOLDS]), *kernels(RBF, EXP, [29.4, 30.3, 29.7, 30.2]))
    wanted = [one.more for one in found.outcomes if one.verdict is UNKNOWN]
    assert None not in wanted and found.more == max(one for one in wanted if one)
    assert told(claim(close, PARTS[UNKNOWN]), *kernels(RBF, EXP, [29.4, 30.3, 29.7, 30.2])).more is None


@pytest.mark.parametrize("name", shipped())
def test_the_papers_claims_cannot_be_told_from_nothing(name: str) -> None:
    for its in load_paper(name).claims:
        found = answer(its, [])
        assert found.verdict is UNKNOWN
        assert {one.reason for one in found.outcomes} == {"no such cells"}


def test_a_claim_of_the_paper_is_answered_from_runs_that_follow_it() -> None:
    """A2: symmetric kernels are hardly worse, in both tasks, for exponential and rbf."""
    (its,) = (one for one in load_paper("tsai2019").claims if one.id == "A2-symmetry")

    def sweep_of(*tasks: str) -> tuple[list[CellRecord], list[RunRecord]]:
        words = {"translation": ("direct-sum", "with-position"), "prediction": ("relative", "without-position")}
        cells = [
            cell(
                f"{task}-{kernel}-{symmetry}", task, kernel=kernel, symmetry=symmetry, position=[position], value=value
            )
            for task in tasks
            for position, value in [words[task]]
            for kernel in ("exponential", "rbf")
            for symmetry in ("asymmetric", "symmetric")
        ]
        noise = [0.02, -0.03, 0.01, 0.0, -0.01, 0.02, -0.02, 0.01, 0.03, -0.01, 0.0, -0.02]
        runs = [
            one
            for index, each in enumerate(cells)
            for one in seeded(each.id, *(30 + seed + noise[(3 * index + 5 * seed) % 12] for seed in range(3)))
        ]
        return cells, runs

    found = told(its, *sweep_of("translation", "prediction"))
    assert found.verdict is HOLDS and len(found.outcomes) == 4
    half = told(its, *sweep_of("translation"))
    assert half.verdict is UNKNOWN
    assert [one.verdict for one in half.outcomes] == [HOLDS, HOLDS, UNKNOWN, UNKNOWN]


def test_an_outcome_without_an_estimate_has_no_interval() -> None:
    found = only(contrast(), RBF, EXP)
    assert replace(found, estimate=None).interval is None
