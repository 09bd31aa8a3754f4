"""What the runs say of a claim in each setting, against Welch's t by scipy and values worked by hand."""

from dataclasses import replace
from math import inf, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sweeps import cell, run, seeded, sweep

from kdx.report.papers.contrasted_cells import following
from kdx.report.papers.decisions import ContrastOutcome, Errors, Verdict
from kdx.report.papers.paper_file import Claim, Contrast, Rule, load_paper, shipped
from kdx.report.papers.verdicts import Answer, SettingVerdict, answers
from kdx.report.statistics.rates import p_rates
from kdx.store.records import CellRecord, RunRecord, RunState

HOLDS, FAILS, UNKNOWN = Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.CANNOT_TELL
RBF, EXP = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0]
KERNELS = ("rbf", "exponential", "polynomial", "linear")
LOSS = {"select": {"metric": "loss"}}


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
    tail += "" if task == "translation" else task
    return (
        [cell(kernel + tail, task, kernel=kernel, **choices) for kernel, _ in used],
        [one for kernel, its in used for one in seeded(kernel + tail, *its)],
    )


Records = tuple[list[CellRecord], list[RunRecord]]


def joined(*parts: Records) -> Records:
    return [one for cells, _ in parts for one in cells], [one for _, runs in parts for one in runs]


def told(its: Claim, cells: list[CellRecord], runs: list[RunRecord]) -> Answer:
    return answers([its], [sweep(cells, runs)])[0]


def finding(its: Claim, cells: list[CellRecord], runs: list[RunRecord]) -> SettingVerdict:
    """Of a claim in the one setting there is."""
    (found,) = told(its, cells, runs).settings
    return found


def only(its: Contrast, *scores: list[float], **choices: object) -> ContrastOutcome:
    """The outcome of a claim of one contrast in one setting."""
    (found,) = finding(claim(its), *kernels(*scores, **choices)).outcomes
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


def of_runs(expect: str, a: list[RunRecord], b: list[RunRecord], **rest: object) -> ContrastOutcome:
    cells, _ = kernels([], [])
    (found,) = finding(claim(contrast(expect=expect, **rest)), cells, [*a, *b]).outcomes
    return found


def welch(parts: list[tuple[float, list[float]]]) -> tuple[float, float, float]:
    """Value, standard error and degrees of freedom of a weighted sum of means, each with its own spread."""
    variances = np.array([weight**2 * np.var(its, ddof=1) / len(its) for weight, its in parts])
    df = [(len(its) - 1) * variances.sum() / variance for variance, (_, its) in zip(variances, parts, strict=True)]
    return sum(weight * np.mean(its) for weight, its in parts), sqrt(variances.sum()), min(df)


def test_two_cells_are_compared_by_their_own_spreads() -> None:
    found = only(contrast(), RBF, EXP)
    value, error, df = welch([(1, RBF), (-1, EXP)])
    test = stats.ttest_ind(RBF, EXP, equal_var=False)
    assert value / error == pytest.approx(test.statistic) and df <= test.df
    assert found.estimate and found.estimate.value == pytest.approx(0.65) and found.n == 4
    assert found.interval == pytest.approx(stats.t(df, value, error).interval(0.95))
    assert found.verdict is UNKNOWN and test.pvalue > 0.05
    assert (found.a, found.b) == (("rbf",), ("exponential",))


@pytest.mark.parametrize(
    ("expect", "margin", "a", "verdict"),
    [
        # b is 10, 10.1, 10.2: the differences are 2 and −2, and half of their 95% interval 0.227, of their 90% 0.174.
        ("better", None, [12.0, 12.1, 12.2], HOLDS),
        ("better", 1.77, [12.0, 12.1, 12.2], HOLDS),
        ("better", 1.78, [12.0, 12.1, 12.2], UNKNOWN),
        ("better", 2.22, [12.0, 12.1, 12.2], UNKNOWN),
        ("better", 2.23, [12.0, 12.1, 12.2], FAILS),
        ("better", None, [8.0, 8.1, 8.2], FAILS),
        ("better", None, [10.1, 10.2, 10.3], UNKNOWN),
        ("no-worse", 0.1, [12.0, 12.1, 12.2], HOLDS),
        ("no-worse", 2.18, [8.0, 8.1, 8.2], HOLDS),
        ("no-worse", 2.17, [8.0, 8.1, 8.2], UNKNOWN),
        ("no-worse", 1.78, [8.0, 8.1, 8.2], UNKNOWN),
        ("no-worse", 1.77, [8.0, 8.1, 8.2], FAILS),
        ("equivalent", 2.18, [12.0, 12.1, 12.2], HOLDS),
        ("equivalent", 2.17, [12.0, 12.1, 12.2], UNKNOWN),
        ("equivalent", 1.78, [12.0, 12.1, 12.2], UNKNOWN),
        ("equivalent", 1.77, [12.0, 12.1, 12.2], FAILS),
        ("equivalent", 2.18, [8.0, 8.1, 8.2], HOLDS),
        ("equivalent", 1.77, [8.0, 8.1, 8.2], FAILS),
    ],
)
def test_what_is_decided_by_where_the_interval_lies(
    expect: str, margin: float | None, a: list[float], verdict: Verdict
) -> None:
    its, b = contrast(expect=expect, margin=margin), [10.0, 10.1, 10.2]
    assert only(its, a, b).verdict is verdict
    # A loss is better below.
    down = only(its, [-one for one in a], [-one for one in b], **LOSS)
    assert down.verdict is verdict and down.estimate and down.estimate.value == pytest.approx(np.mean(a) - 10.1)


def test_a_margin_may_be_a_share_of_the_other_side() -> None:
    """A difference of 0.2, with half of its 90% interval 0.17, is within 4% of 10.1, but not within 3%."""
    sides = [10.2, 10.3, 10.4], [10.0, 10.1, 10.2]
    for share, verdict in (("4%", HOLDS), ("3%", UNKNOWN)):
        found = only(contrast(expect="equivalent", margin=share), *sides)
        assert found.margin == pytest.approx(float(share[:-1]) / 100 * 10.1)
        assert found.verdict is verdict
    absolute = only(contrast(expect="equivalent", margin=0.4), *sides)
    assert (absolute.margin, absolute.verdict) == (0.4, HOLDS)


def test_perplexities_are_compared_in_nats_and_so_are_their_margins() -> None:
    a, b = [4.0, 4.02, 4.04], [4.1, 4.12, 4.14]
    value, error, df = welch([(1, [*np.log(b)]), (-1, [*np.log(a)])])
    for scale in (1, 100):
        sides = [x * scale for x in a], [x * scale for x in b]
        found = only(contrast(expect="equivalent", margin="4%"), *sides, task="prediction")
        assert found.estimate and found.estimate.value == pytest.approx(value)
        assert (found.estimate.error, found.estimate.df) == pytest.approx((error, df))
        assert found.margin == pytest.approx(log(1.04)) and found.verdict is HOLDS
        absolute = only(contrast(expect="equivalent", margin=0.165 * scale), *sides, task="prediction")
        assert absolute.margin == pytest.approx(log(1 + 0.165 / 4.12))


seeds = st.integers(0, 10**6).map(
    lambda draw: np.random.default_rng(draw).normal([[0.0], [0.4]], [[0.5], [0.2]], (2, 4)).round(3).tolist()
)


@settings(deadline=None, max_examples=80)
@given(seeds, st.sampled_from(["better", "no-worse", "equivalent"]), st.sampled_from([0.1, 0.5, 1.0, 2.0]))
def test_every_verdict_is_that_of_one_sided_t_tests(scores: list[list[float]], expect: str, margin: float) -> None:
    value, error, df = welch([(1, scores[0]), (-1, scores[1])])

    def above(bound: float) -> float:
        return float(stats.t.sf((value - bound) / error, df))

    def below(bound: float) -> float:
        return float(stats.t.cdf((value - bound) / error, df))

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


def test_cells_that_a_contrast_does_not_ask_for_tell_nothing_of_it() -> None:
    alone = finding(claim(), *kernels(RBF, EXP))
    wild = kernels(RBF, EXP, [0.0, 50.0, 0.0, 50.0], [1.0, 9.0, 1e9, 4.0])
    assert finding(claim(), *wild) == alone


def test_seeds_need_not_be_common() -> None:
    cells, runs = kernels(RBF, EXP)
    others = [replaced._replace(seed=replaced.seed + 10 * (replaced.cell_id == "rbf")) for replaced in runs]
    assert told(claim(), cells, others) == told(claim(), cells, runs)


def test_what_the_contrast_does_not_name_is_averaged_over() -> None:
    others = [31.0, 31.0, 30.0, 31.5], [28.0, 29.9, 28.5, 30.0]
    records = joined(kernels(RBF, EXP, norm="post"), kernels(*others, norm="pre"))
    (found,) = finding(claim(), *records).outcomes
    value, error, df = welch([(0.5, RBF), (-0.5, EXP), (0.5, others[0]), (-0.5, others[1])])
    assert found.over == ("norm",) and found.confounders == ()
    assert len(found.a) == len(found.b) == 2
    assert found.estimate and (found.estimate.value, found.estimate.error) == pytest.approx((value, error))
    assert found.estimate.df == pytest.approx(df)


def test_sides_that_differ_in_what_is_not_named_are_not_compared() -> None:
    cells = [cell("rbf", kernel="rbf", norm="pre"), cell("exponential", kernel="exponential", norm="post")]
    found = finding(claim(), cells, [*seeded("rbf", *RBF), *seeded("exponential", *EXP)])
    assert found.verdict is UNKNOWN and found.setting == {}
    assert [(one.reason, one.metric, one.n) for one in found.outcomes] == [("no such cells", None, 0)]


def test_where_limits_both_sides() -> None:
    records = joined(kernels(RBF, EXP, norm="post"), kernels(EXP, RBF, norm="pre"))
    (found,) = finding(claim(contrast(where={"norm": "pre"})), *records).outcomes
    assert (found.a, found.over) == (("rbfpre",), ())
    assert found.estimate and found.estimate.value == pytest.approx(-0.65)


@pytest.mark.parametrize(
    "other",
    [
        {"model": {"width": 64, "heads": 2}},
        {"data": {"corpus": "other"}},
        {"training": {"steps": 10}},
        {"evaluation": {"beam": 4}},
        {"select": {"metric": "valid/loss"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_cells_of_another_setting_are_compared_among_themselves(other: dict[str, object]) -> None:
    records = joined(kernels(RBF, EXP), kernels(*[[x / 2 for x in side] for side in (EXP, RBF)], **other))
    found = told(claim(), *records).settings
    assert [[len(one.a) for one in each.outcomes] for each in found] == [[1], [1]]
    first, second = (one.estimate for each in found for one in each.outcomes)
    assert first == only(contrast(), RBF, EXP).estimate
    assert second
    # Of a loss, less is better.
    assert second.value == pytest.approx(0.325 if "select" in other else -0.325)


GOOD, BAD = ([20.0, 21.1, 22.0], [10.0, 11.0, 12.1]), ([10.0, 11.0, 12.1], [20.0, 21.1, 22.0])


@pytest.mark.parametrize(("scores", "verdict"), [(GOOD, HOLDS), (BAD, FAILS), (([1.0], [2.0]), UNKNOWN)])
def test_each_setting_has_a_verdict_of_its_own(scores: tuple[list[float], ...], verdict: Verdict) -> None:
    """A smoke run neither makes nor unmakes what the runs of another size say."""
    found = told(claim(), *joined(kernels(*GOOD), kernels(*scores, training={"steps": 10}))).settings
    assert [(one.setting["training.steps"], one.verdict) for one in found] == [("1000", HOLDS), ("10", verdict)]
    assert [len(one.outcomes) for one in found] == [1, 1]


def test_a_contrast_without_cells_in_a_setting_cannot_be_told_there() -> None:
    its = claim(contrast(), contrast("rbf", "polynomial"))
    here, there = kernels(*GOOD, GOOD[1]), kernels(*GOOD, training={"steps": 10})
    whole, part = told(its, *joined(here, there)).settings
    assert (whole.verdict, part.verdict) == (HOLDS, UNKNOWN)
    assert [(one.verdict, one.reason) for one in part.outcomes] == [(HOLDS, ""), (UNKNOWN, "no such cells")]


def of_tasks() -> Claim:
    """rbf is better on translation, and in one of two ways on prediction."""
    on_prediction = {"where": {"task": "prediction"}}
    ways = Rule(True, (contrast(**on_prediction), contrast("rbf", "polynomial", **on_prediction)))
    return claim(contrast(where={"task": "translation"}), ways)


def test_what_a_claim_asks_of_another_task_is_left_out() -> None:
    translation, prediction = kernels(*GOOD), kernels(*GOOD, GOOD[0], task="prediction")
    first, second = told(of_tasks(), *joined(translation, prediction)).settings
    assert (first.setting["task"], first.verdict, len(first.outcomes)) == ("translation", HOLDS, 1)
    # Of a perplexity less is better.
    assert (second.setting["task"], second.verdict, len(second.outcomes)) == ("prediction", UNKNOWN, 2)
    assert [one.verdict for one in second.outcomes] == [FAILS, UNKNOWN]
    alone = finding(of_tasks(), *translation)
    assert alone == first, "whether the other task was trained or not"


def test_the_chances_of_an_error_are_shared_within_a_task() -> None:
    translation, prediction = kernels(*GOOD), kernels(*GOOD, GOOD[0], task="prediction")
    errors = [
        [one.errors for one in each.outcomes] for each in told(of_tasks(), *joined(translation, prediction)).settings
    ]
    assert errors == [[shared(0.05, 0.05)], [shared(0.025, 0.05)] * 2]


def test_a_task_may_be_what_a_side_is_about() -> None:
    sides = {"a": {"task": "translation", "kernel": "rbf"}, "b": {"task": "translation", "kernel": "exponential"}}
    its = claim(Contrast.model_validate({**sides, "expect": "better"}))
    (found,) = told(its, *joined(kernels(*GOOD), kernels(*BAD, task="prediction"))).settings
    assert found.verdict is HOLDS


def test_a_setting_tells_task_corpus_width_and_steps_unless_they_are_compared() -> None:
    assert finding(claim(), *kernels(RBF, EXP)).setting == {
        "task": "translation",
        "data.corpus": "synthetic",
        "model.width": "128",
        "training.steps": "1000",
    }
    by_width = Contrast.model_validate({"a": {"model.width": 256}, "b": {"model.width": 128}, "expect": "better"})
    cells = [cell(f"w{width}", model={"width": width}) for width in (128, 256)]
    found = finding(claim(by_width), cells, [*seeded("w128", *EXP), *seeded("w256", *RBF)])
    assert set(found.setting) == {"task", "data.corpus", "training.steps"}
    (outcome,) = found.outcomes
    assert outcome.estimate and outcome.estimate.value == pytest.approx(0.65)


def of_choices(
    a: dict[str, object], b: dict[str, object], *rest: dict[str, object], task: str = "translation"
) -> SettingVerdict:
    """What is found of a cell with the choices of a, far better than that of b and others that have b's words too."""
    its = {"a": a, "b": b, "expect": "better"}
    cells = [cell(f"c{index}", task, **one) for index, one in enumerate((a, b, *rest))]
    worse = 0.1 if task == "translation" else 10.0
    runs = [*seeded("c0", 30.0, 30.1, 30.2)]
    runs += [one for other in cells[1:] for one in seeded(other.id, *(worse * x for x in (30.0, 30.1, 30.2)))]
    return finding(claim(Contrast.model_validate(its)), cells, runs)


PRODUCT, SUM = {"position": "product"}, {"position": "direct-sum"}


@pytest.mark.parametrize(
    ("a", "b", "task", "confounders"),
    [
        # A look-up has no encoding, and here its placement is another one than the product's.
        (PRODUCT, {"position": "lookup"}, "translation", ("placement",)),
        (PRODUCT, {"position": "relative"}, "prediction", ()),
        (
            {**PRODUCT, "symmetry": "symmetric", "value": "without-position"},
            {**SUM, "symmetry": "asymmetric", "value": "with-position", "inject": "input"},
            "translation",
            ("symmetry", "value"),
        ),
        (
            {**PRODUCT, "value": "without-position", "memory": 8},
            {**SUM, "value": "with-position", "inject": "input", "memory": 0},
            "prediction",
            ("value", "memory"),
        ),
        # The first factor that a names is what it is about.
        (
            {"symmetry": "symmetric", "kernel": "rbf"},
            {"symmetry": "asymmetric", "kernel": "linear"},
            "translation",
            ("kernel",),
        ),
        (
            {"kernel": "rbf", "symmetry": "symmetric"},
            {"symmetry": "asymmetric", "kernel": "linear"},
            "translation",
            ("symmetry",),
        ),
        ({"kernel": "rbf", "norm": "pre"}, {"kernel": "linear", "norm": "pre"}, "translation", ()),
    ],
)
def test_a_claim_that_holds_says_in_what_else_the_sides_differ(
    a: dict[str, object], b: dict[str, object], task: str, confounders: tuple[str, ...]
) -> None:
    found = of_choices(a, b, task=task)
    assert (found.verdict, found.confounders) == (HOLDS, confounders)
    assert found.outcomes[0].confounders == confounders
    assert str(found) == ("holds, confounded by " + ", ".join(confounders) if confounders else "holds")


def test_what_does_not_hold_is_not_said_to_be_confounded() -> None:
    found = of_choices({"position": "lookup"}, PRODUCT)
    assert found.verdict is HOLDS
    other = Contrast.model_validate({"a": PRODUCT, "b": {"position": "lookup"}, "expect": "better"})
    cells = [cell("a", **PRODUCT), cell("b", position="lookup")]
    failed = finding(claim(other), cells, [*seeded("a", 1.0, 1.1), *seeded("b", 30.0, 30.1)])
    assert (failed.verdict, failed.confounders, str(failed)) == (FAILS, (), "does not hold")
    assert failed.outcomes[0].confounders == ("placement",), "but the contrast tells it"


def test_what_a_side_has_in_several_ways_is_averaged_over() -> None:
    found = of_choices(PRODUCT, {"position": "lookup"}, {"position": "lookup", "clip": 4})
    (outcome,) = found.outcomes
    assert outcome.over == ("clip",) and len(outcome.b) == 2
    assert outcome.confounders == ("placement",)


def test_what_follows_from_a_factor() -> None:
    assert "clip" in following(["position"]) and "kernel" not in following(["position"])
    assert following([]) == following(["kernel"]) == frozenset()


def test_n_is_that_of_the_cell_with_the_fewest_scores() -> None:
    found = only(contrast(), RBF, EXP[:2])
    value, error, df = welch([(1, RBF), (-1, EXP[:2])])
    assert found.n == 2
    assert found.estimate and (found.estimate.value, found.estimate.error, found.estimate.df) == pytest.approx(
        (value, error, df)
    )


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_score_that_is_not_finite_counts_as_diverged(bad: float) -> None:
    one = only(contrast(), [*RBF, bad], [*EXP, 30.0])
    assert (one.n, one.estimate, one.diverged, one.ended) == (4, None, (1, 0), (5, 5))
    assert one.verdict is UNKNOWN and one.rates
    lost = of_runs("better", [*seeded("rbf", bad, bad, bad)], [*seeded("exponential", *EXP)])
    as_diverged = of_runs("better", diverged("rbf", 3), [*seeded("exponential", *EXP)])
    assert lost == as_diverged and lost.verdict is FAILS


def test_one_seed_tells_nothing() -> None:
    found = only(contrast(), [31.0], [29.0])
    assert (found.verdict, found.estimate, found.interval) == (UNKNOWN, None, None)
    assert (found.n, found.more, found.reason) == (1, 1, "a cell has a single seed")
    others = only(contrast(), RBF, [29.0])
    assert (others.estimate, others.n, others.more) == (None, 1, 1)


def test_no_runs_are_no_cells() -> None:
    cells, _ = kernels([], [])
    waiting = [run(each.id, 0, state=RunState.PENDING, id=index) for index, each in enumerate(cells)]
    for found in (answers([claim()], [])[0], told(claim(), cells, []), told(claim(), cells, waiting)):
        (only_one,) = found.settings
        assert (only_one.verdict, only_one.more, only_one.setting) == (UNKNOWN, None, {})
        assert [(one.reason, one.more) for one in only_one.outcomes] == [("no such cells", None)]


def test_a_cell_of_several_sweeps_counts_once_with_the_runs_of_all() -> None:
    cells, runs = kernels(RBF, EXP)
    first, second = sweep(cells, runs[:6]), sweep(cells, [*runs[4:]])
    assert answers([claim()], [first, second])[0] == told(claim(), cells, runs)


def test_another_metric_may_decide() -> None:
    cells = [cell("rbf", kernel="rbf"), cell("exponential", kernel="exponential")]
    runs = [run("rbf", seed, 5.0 + seed, 1.0, id=seed) for seed in range(3)]
    runs += [run("exponential", seed, 0.1 * seed, 9.0, id=10 + seed) for seed in range(3)]
    assert finding(claim(contrast(metric="valid/bleu")), cells, runs).verdict is HOLDS
    metrics = {one.id: {"test/perplexity": 9.0 if one.id < 10 else 8.0} for one in runs}
    (one,) = answers([claim(contrast(metric="perplexity"))], [sweep(cells, runs, metrics=metrics)])[0].settings
    (found,) = one.outcomes
    assert found.metric and found.metric.name == "perplexity"
    assert found.estimate and found.estimate.value == pytest.approx(-log(9 / 8))
    none = finding(claim(contrast(metric="word_perplexity")), cells, runs)
    assert none.outcomes[0].reason == "no such cells"


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


@pytest.mark.parametrize(
    ("a", "b", "exact"),
    [
        ((0, 3), (3, 3), HOLDS),
        ((0, 2), (2, 2), UNKNOWN),
        ((0, 4), (2, 2), HOLDS),
        ((1, 5), (5, 5), HOLDS),
        ((0, 5), (3, 5), UNKNOWN),
        ((0, 5), (4, 5), HOLDS),
        ((4, 5), (0, 5), FAILS),
        ((3, 5), (0, 5), UNKNOWN),
    ],
)
def test_rates_are_told_apart_by_barnards_exact_test(a: tuple[int, int], b: tuple[int, int], exact: Verdict) -> None:
    found = of_runs("better", diverged("rbf", *a), diverged("exponential", *b))
    table = [[a[0], b[0]], [a[1] - a[0], b[1] - b[0]]]
    assert bool(stats.barnard_exact(table, n=256).pvalue <= 0.05) is (exact is not UNKNOWN)
    assert found.verdict is exact


def test_two_runs_a_side_do_not_decide_by_divergence() -> None:
    """Of equal rates of ½, two diverge against none in 2 of 16 cases."""
    found = of_runs("better", diverged("rbf", 0, 2), diverged("exponential", 2))
    assert (found.verdict, found.more) == (UNKNOWN, 1)
    assert p_rates((0, 2), (2, 2)) == pytest.approx(0.125)


def test_rates_that_are_one_of_two_chances_have_to_be_further_apart() -> None:
    """p = 0.031 is below 5%, but not below the half of it."""
    cells, _ = kernels([], [])
    runs = [*diverged("rbf", 0, 3), *diverged("exponential", 3)]
    assert finding(claim(), cells, runs).verdict is HOLDS
    assert finding(claim(contrast(), PARTS[UNKNOWN], any=True), cells, runs).verdict is UNKNOWN
    assert finding(claim(contrast("exponential", "rbf")), cells, runs).verdict is FAILS
    back = finding(claim(contrast("exponential", "rbf"), PARTS[UNKNOWN]), cells, runs)
    assert [one.verdict for one in back.outcomes] == [UNKNOWN, UNKNOWN]


def test_rates_that_say_nothing_leave_it_to_the_scores_of_the_others() -> None:
    a = [run("rbf", seed, score, score, id=seed) for seed, score in enumerate([20.0, 21.0, 22.1])]
    b = diverged("exponential", 1, 4)
    found = of_runs("better", a, b)
    assert found.rates and found.rates[0] <= 0 <= found.rates[1]
    assert found.verdict is HOLDS and found.n == 3 and found.estimate


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

    found = of_runs(expect, runs(0, *a), runs(1, *b), margin=1.0)
    assert found.rates and found.rates[0] <= 0 <= found.rates[1]
    assert found.verdict is verdict
    if verdict is UNKNOWN:
        assert found.reason.startswith("one side diverged more often") and found.more and found.more > 1


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


def known() -> Records:
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
    assert finding(claim(*of), *known()).verdict is all_of
    found = finding(claim(*of, any=True), *known())
    assert found.verdict is any_of
    assert [one.verdict for one in found.outcomes] == list(parts)


def test_rules_nest() -> None:
    any_of = Rule(True, (PARTS[FAILS], PARTS[HOLDS]))
    assert finding(claim(PARTS[HOLDS], any_of), *known()).verdict is HOLDS
    assert finding(claim(PARTS[UNKNOWN], any_of), *known()).verdict is UNKNOWN
    all_of = Rule(False, (PARTS[HOLDS], PARTS[FAILS]))
    assert finding(claim(all_of, PARTS[FAILS], any=True), *known()).verdict is FAILS


def shared(holds: float, does_not_hold: float) -> Errors:
    return Errors(pytest.approx(holds), pytest.approx(does_not_hold))


def test_parts_that_could_each_bring_a_verdict_about_share_its_five_percent() -> None:
    """Any of several makes `any` hold, and any of several makes `all` not hold."""

    def errors(its: Claim) -> list[Errors]:
        return [one.errors for one in finding(its, *known()).outcomes]

    one, other = PARTS[HOLDS], PARTS[FAILS]
    assert errors(claim(one)) == errors(claim(one, any=True)) == [shared(0.05, 0.05)]
    assert errors(claim(one, other)) == [shared(0.05, 0.025)] * 2
    assert errors(claim(one, other, any=True)) == [shared(0.025, 0.05)] * 2
    all_of, any_of = Rule(False, (one, other)), Rule(True, (one, other))
    assert errors(claim(all_of, one, any=True)) == [*[shared(0.025, 0.025)] * 2, shared(0.025, 0.05)]
    assert errors(claim(any_of, one, any=True)) == [*[shared(0.0125, 0.05)] * 2, shared(0.025, 0.05)]
    assert errors(claim(all_of, one)) == [*[shared(0.05, 0.0125)] * 2, shared(0.05, 0.025)]
    assert errors(claim(any_of, one)) == [*[shared(0.025, 0.025)] * 2, shared(0.05, 0.025)]


def test_what_is_decided_alone_may_not_be_told_as_one_of_two_chances() -> None:
    a, b = [11.2, 12.0, 12.8], [9.4, 10.0, 10.7]
    value, error, df = welch([(1, a), (-1, b)])
    assert 0.025 < 2 * stats.t.sf(value / error, df) < 0.05
    assert only(contrast(), a, b).verdict is HOLDS
    assert finding(claim(contrast(), PARTS[UNKNOWN], any=True), *kernels(a, b)).verdict is UNKNOWN
    assert only(contrast(), b, a).verdict is FAILS
    (first, _) = finding(claim(contrast(), PARTS[UNKNOWN]), *kernels(b, a)).outcomes
    assert first.verdict is UNKNOWN, "nor that a part of all does not hold"
    (first, _) = finding(claim(contrast(), PARTS[UNKNOWN]), *kernels(a, b)).outcomes
    assert first.verdict is HOLDS, "all have to hold, so none needs a correction"


def enough(low: float, high: float, found: ContrastOutcome, level: float) -> int:
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
    chance, _ = finding(claim(contrast(), PARTS[UNKNOWN], any=True), *kernels(RBF, EXP)).outcomes
    assert chance.more == enough(0.0, inf, chance, 0.975) - 4


def test_no_number_of_seeds_decides_what_lies_on_the_bound() -> None:
    found = only(contrast(), [10.0, 12.0, 11.0], [11.0, 11.0, 11.0])
    assert (found.verdict, found.more) == (UNKNOWN, None)


def test_runs_that_are_all_the_same_are_equivalent_and_not_better() -> None:
    same = [1.0, 1.0]
    assert only(contrast(expect="equivalent", margin=0.1), same, same).verdict is HOLDS
    assert only(contrast(expect="no-worse", margin=0.1), same, same).verdict is HOLDS
    assert only(contrast(), same, same).verdict is UNKNOWN


def test_what_is_told_needs_no_more_seeds() -> None:
    found = finding(claim(PARTS[HOLDS], PARTS[FAILS]), *known())
    assert [one.more for one in found.outcomes] == [None, None]
    assert found.more is None


def test_a_claim_needs_as_many_more_as_its_neediest_part_as_far_as_seeds_can_tell() -> None:
    close = contrast("exponential", "polynomial", expect="equivalent", margin=0.3)
    closer = contrast("exponential", "polynomial", expect="equivalent", margin=0.2)
    far = kernels([40.1, 41.4, 39.8, 40.9], EXP, [29.4, 30.3, 29.7, 30.2])
    found = finding(claim(close, closer, PARTS[HOLDS]), *far)
    wanted = [one.more for one in found.outcomes if one.verdict is UNKNOWN]
    assert len(wanted) == 2 and None not in wanted and found.more == max(one for one in wanted if one)
    assert finding(claim(close, PARTS[UNKNOWN]), *far).more is None


@pytest.mark.parametrize("name", shipped())
def test_the_papers_claims_cannot_be_told_from_nothing(name: str) -> None:
    for its in load_paper(name).claims:
        (found,) = answers([its], [])[0].settings
        assert found.verdict is UNKNOWN
        assert {one.reason for one in found.outcomes} == {"no such cells"}


def test_a_claim_of_the_paper_is_answered_from_runs_that_follow_it() -> None:
    """A2: symmetric kernels are hardly worse, in both tasks, for every kernel."""
    (its,) = (one for one in load_paper("tsai2019").claims if one.id == "A2-symmetry")
    asked = [one for one in its.holds.of if isinstance(one, Contrast)]

    def sweep_of(*tasks: str, lost: float = 0.0) -> Records:
        words = {"translation": ("direct-sum", "with-position"), "prediction": ("relative", "without-position")}
        cells = [
            cell(
                f"{task}-{kernel}-{symmetry}", task, kernel=kernel, symmetry=symmetry, position=[position], value=value
            )
            for task in tasks
            for position, value in [words[task]]
            for kernel in ("exponential", "rbf", "polynomial")
            for symmetry in ("asymmetric", "symmetric")
        ]
        noise = [0.02, -0.03, 0.01, 0.0, -0.01, 0.02, -0.02, 0.01, 0.03, -0.01, 0.0, -0.02]
        runs = [
            one
            for index, each in enumerate(cells)
            for base in [30 - lost * each.id.startswith("translation-rbf-symmetric")]
            for one in seeded(each.id, *(base + noise[(3 * index + 5 * seed) % 12] for seed in range(3)))
        ]
        return cells, runs

    both = told(its, *sweep_of("translation", "prediction")).settings
    assert [(one.setting["task"], one.verdict) for one in both] == [("translation", HOLDS), ("prediction", HOLDS)]
    assert [len(one.outcomes) for one in both] == [
        sum(one.where["task"] == task for one in asked) for task in ("translation", "prediction")
    ]
    worse = told(its, *sweep_of("translation", "prediction", lost=1.0)).settings
    assert [one.verdict for one in worse] == [FAILS, HOLDS]
    assert told(its, *sweep_of("translation")).settings == both[:1]


def test_an_outcome_without_an_estimate_has_no_interval() -> None:
    found = only(contrast(), RBF, EXP)
    assert replace(found, estimate=None).interval is None


def drawn(rng: np.random.Generator, spreads: dict[str, float], n: int, diverging: float) -> Records:
    """Cells with the same mean."""
    cells, _ = kernels(*([] for _ in spreads))
    runs = [
        run(kernel, seed, state=RunState.DIVERGED, id=100 * index + seed)
        if rng.random() < diverging
        else run(kernel, seed, 1.0, float(rng.normal(30, spread)), id=100 * index + seed)
        for index, (kernel, spread) in enumerate(spreads.items())
        for seed in range(n)
    ]
    return cells, runs


@pytest.mark.long
@pytest.mark.parametrize(("n", "diverging", "noisy"), [(3, 0.0, 1.0), (3, 0.0, 8.0), (3, 0.3, 8.0), (5, 0.3, 8.0)])
def test_a_verdict_is_false_in_at_most_one_of_twenty(n: int, diverging: float, noisy: float) -> None:
    """All cells are equal: `better` never holds of any pair, and `no-worse` and `equivalent` always do of all."""
    rng = np.random.default_rng(n)
    spreads = dict(zip(KERNELS, (noisy, 1.0, 1.0, 1.0), strict=True))
    pairs = [("rbf", "exponential"), ("polynomial", "linear"), ("exponential", "linear"), ("rbf", "polynomial")]
    better = claim(*(contrast(*pair) for pair in pairs), any=True)
    equal = claim(*(contrast(*pair, expect="equivalent", margin=0.5) for pair in pairs))
    no_worse = claim(*(contrast(*pair, expect="no-worse", margin=0.1) for pair in pairs))
    draws = 200
    false = dict.fromkeys(("better holds", "equal fails", "no worse fails"), 0)
    for _ in range(draws):
        records = drawn(rng, spreads, n, diverging)
        false["better holds"] += any(one.verdict is HOLDS for one in told(better, *records).settings)
        false["equal fails"] += any(one.verdict is FAILS for one in told(equal, *records).settings)
        false["no worse fails"] += any(one.verdict is FAILS for one in told(no_worse, *records).settings)
    # Of 200, 10 are 5%; more than 18 come once in 200 times.
    assert max(false.values()) <= 18, false
