"""Which cells a contrast compares, in which setting."""

from math import log

import pytest
from claimed import (
    EXP,
    HOLDS,
    PRODUCT,
    RBF,
    UNKNOWN,
    claim,
    contrast,
    finding,
    joined,
    kernels,
    of_choices,
    only,
    told,
    welch,
)
from sweeps import cell, run, seeded, sweep

from kdx.report.papers.contrasted_cells import SHOWN_FACTORS, following
from kdx.report.papers.paper_file import Contrast
from kdx.report.papers.verdicts import answers
from kdx.store.records import CellRecord, RunState


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


def test_settings_that_read_alike_are_distinguished_by_a_word_before_a_number() -> None:
    modern = {"model": {"inner": 172, "feed_forward": "swiglu", "normalisation": "rms"}}
    rates = [{"training": {"learning_rate": rate}} for rate in (0.1, 0.2)]
    cells = joined(kernels(RBF, EXP), kernels(RBF, EXP, **modern), *(kernels(RBF, EXP, **one) for one in rates))
    found = told(claim(), *cells).settings
    more = [{factor: word for factor, word in one.setting.items() if factor not in SHOWN_FACTORS} for one in found]
    assert more == [
        {"model.feed_forward": "relu", "training.learning_rate": "0.003"},
        {"model.feed_forward": "swiglu", "training.learning_rate": "0.003"},
        {"model.feed_forward": "relu", "training.learning_rate": "0.1"},
        {"model.feed_forward": "relu", "training.learning_rate": "0.2"},
    ]
    alone = [kernels(RBF, EXP), kernels(RBF, EXP, training={"steps": 7, "learning_rate": 0.1})]
    assert all(set(one.setting) == set(SHOWN_FACTORS) for one in told(claim(), *joined(*alone)).settings)


def test_what_a_side_has_in_several_ways_is_averaged_over() -> None:
    found = of_choices(PRODUCT, {"position": "lookup"}, {"position": "lookup", "clip": 4})
    (outcome,) = found.outcomes
    assert outcome.over == ("clip",) and len(outcome.b) == 2
    assert outcome.confounders == ("placement",)


def kernels_at(*temperatures: tuple[str, float]) -> list[CellRecord]:
    return [cell(f"{kernel} {heat}", kernel=kernel, temperature=heat) for kernel, heat in temperatures]


def test_an_option_that_the_words_of_both_sides_bring_along_has_to_agree() -> None:
    cells = kernels_at(("rbf", 1.0), ("rbf", 2.0), ("exponential", 1.0), ("exponential", 0.5))
    runs = [one for each in cells for one in seeded(each.id, *(EXP if each.id.endswith("1.0") else [50.0, 60.0]))]
    (outcome,) = finding(claim(), cells, runs).outcomes
    assert (outcome.a, outcome.b, outcome.over, outcome.confounders) == (("rbf 1.0",), ("exponential 1.0",), (), ())


def test_cells_at_different_temperatures_alone_are_not_compared_by_their_kernels() -> None:
    cells = kernels_at(("rbf", 2.0), ("exponential", 1.0))
    (outcome,) = finding(claim(), cells, [one for each in cells for one in seeded(each.id, *EXP)]).outcomes
    assert outcome.reason == "no such cells"


def test_an_option_of_both_sides_that_agrees_is_averaged_over() -> None:
    cells = kernels_at(*((kernel, heat) for kernel in ("rbf", "exponential") for heat in (1.0, 2.0)))
    (outcome,) = finding(claim(), cells, [one for each in cells for one in seeded(each.id, *EXP)]).outcomes
    assert (len(outcome.a), len(outcome.b), outcome.over) == (2, 2, ("temperature",))


def test_what_follows_from_a_factor() -> None:
    assert {"placement", "inject", "encoding"} <= following(["position"]) and "kernel" not in following(["position"])
    assert following(["value"]) == {"encoding"}
    assert following([]) == following(["kernel"]) == frozenset()


def test_n_is_that_of_the_cell_with_the_fewest_scores() -> None:
    found = only(contrast(), RBF, EXP[:2])
    value, error, df = welch([(1, RBF), (-1, EXP[:2])])
    assert found.n == 2
    assert found.estimate and (found.estimate.value, found.estimate.error, found.estimate.df) == pytest.approx(
        (value, error, df)
    )


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
