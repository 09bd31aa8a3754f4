"""Which cells a contrast compares, in which setting."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log, sqrt
from typing import Any

import pytest
import trials
from claimed import (
    EXP,
    HOLDS,
    PRODUCT,
    RBF,
    SUM,
    UNTESTED,
    answer_of,
    claim,
    contrast,
    finding,
    joined,
    kernels,
    of_choices,
    only,
    welch,
)
from sweeps import cell, run, seeded, sweep

from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, resolve_evaluation
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.report.papers.contrasted_cells import (
    SHOWN_FACTORS,
    ContrastedCells,
    RecordedRuns,
    contrasted_cells,
    following,
)
from kdx.report.papers.paper_file import Claim, Contrast, Rule
from kdx.report.papers.verdicts import ContrastOutcome, Verdict, answers
from kdx.report.selection.cells import Cell
from kdx.report.statistics.estimates import contrast as contrast_of
from kdx.report.statistics.estimates import summarise
from kdx.report.statistics.looks import Look
from kdx.store.records import CellRecord, EvaluationRecord, RunState, SweepRecord
from tests.grids import TSALLIS as SOURCE
from tests.grids import recorded

TSALLIS = "mine.py:Tsallis"


def ids(cells: Sequence[Cell]) -> tuple[str, ...]:
    return tuple(cell.id for cell in cells)


def test_cells_that_a_contrast_does_not_ask_for_tell_nothing_of_it() -> None:
    alone = finding(claim(), *kernels(RBF, EXP))
    wild = kernels(RBF, EXP, [0.0, 50.0, 0.0, 50.0], [1.0, 9.0, 1e9, 4.0])
    assert finding(claim(), *wild) == alone


def test_seeds_need_not_be_common() -> None:
    cells, runs = kernels(RBF, EXP)
    others = [replaced._replace(seed=replaced.seed + 10 * (replaced.cell_id == "rbf")) for replaced in runs]
    first, second = (finding(claim(), cells, seeds).outcomes[0] for seeds in (others, runs))
    assert (first.verdict, first.estimate) == (second.verdict, second.estimate)


def test_what_the_contrast_does_not_name_is_averaged_over() -> None:
    others = [31.0, 31.0, 30.0, 31.5], [28.0, 29.9, 28.5, 30.0]
    records = joined(kernels(RBF, EXP, norm="post"), kernels(*others, norm="pre"))
    (outcome,) = finding(claim(), *records).outcomes
    value, error, df = welch([(0.5, RBF), (-0.5, EXP), (0.5, others[0]), (-0.5, others[1])])
    assert outcome.cells.over == ("norm",) and outcome.cells.confounders == ()
    assert len(outcome.cells.a) == len(outcome.cells.b) == 2
    assert outcome.estimate and (outcome.estimate.value, outcome.estimate.error) == pytest.approx((value, error))
    assert outcome.estimate.df == pytest.approx(df)


def test_sides_that_differ_in_what_is_not_named_are_not_compared() -> None:
    cells = [cell("rbf", kernel="rbf", norm="pre"), cell("exponential", kernel="exponential", norm="post")]
    verdict = finding(claim(), cells, [*seeded("rbf", *RBF), *seeded("exponential", *EXP)])
    assert verdict.verdict is UNTESTED and verdict.setting == {}
    assert [(outcome.reason, outcome.cells) for outcome in verdict.outcomes] == [
        ("no such cells: the closest cells of both sides also differ in norm", None)
    ]


def test_a_cell_with_a_choice_for_some_layer_is_on_no_side_of_a_claim_about_cells_without() -> None:
    cells, runs = kernels(RBF, EXP)
    hybrid = cell("hybrid", kernel="exponential", layers={"decoder last": {"qk_norm": "l2"}})
    (outcome,) = finding(claim(), [*cells, hybrid], [*runs, *seeded("hybrid", *RBF)]).outcomes
    assert (ids(outcome.cells.a), ids(outcome.cells.b)) == (("rbf",), ("exponential",))


def test_a_claim_may_be_about_one_layer() -> None:
    layers = {"decoder last": {"kernel": "rbf", "temperature": 2.0}}
    cells = [cell("plain", kernel="exponential"), cell("hybrid", kernel="exponential", layers=layers)]
    (last,) = (name for name in cells[1].spec.words if name.startswith("layers.") and name.endswith(".kernel"))
    sides = {"a": {last: "rbf"}, "b": {last: "exponential"}, "expect": "better"}
    runs = [*seeded("hybrid", *RBF), *seeded("plain", *EXP)]
    (outcome,) = finding(claim(Contrast.model_validate(sides)), cells, runs).outcomes
    assert (ids(outcome.cells.a), ids(outcome.cells.b)) == (("hybrid",), ("plain",))


def test_where_limits_both_sides() -> None:
    records = joined(kernels(RBF, EXP, norm="post"), kernels(EXP, RBF, norm="pre"))
    (outcome,) = finding(claim(contrast(where={"norm": "pre"})), *records).outcomes
    assert (ids(outcome.cells.a), outcome.cells.over) == (("rbfpre",), ())
    assert outcome.estimate and outcome.estimate.value == pytest.approx(-0.65)


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
    result = answer_of(claim(), *records).settings
    assert [[len(outcome.cells.a) for outcome in each.outcomes] for each in result] == [[1], [1]]
    first, second = (outcome.estimate for each in result for outcome in each.outcomes)
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
    verdict = finding(claim(by_width), cells, [*seeded("w128", *EXP), *seeded("w256", *RBF)])
    assert set(verdict.setting) == {"task", "data.corpus", "training.steps"}
    (outcome,) = verdict.outcomes
    assert outcome.estimate and outcome.estimate.value == pytest.approx(0.65)


def test_settings_that_read_alike_are_distinguished_by_a_word_before_a_number() -> None:
    modern = {"model": {"inner": 172, "feed_forward": "swiglu", "normalisation": "rms"}}
    rates = [{"training": {"learning_rate": rate}} for rate in (0.1, 0.2)]
    cells = joined(kernels(RBF, EXP), kernels(RBF, EXP, **modern), *(kernels(RBF, EXP, **each) for each in rates))
    result = answer_of(claim(), *cells).settings
    more = [{factor: word for factor, word in each.setting.items() if factor not in SHOWN_FACTORS} for each in result]
    assert more == [
        {"model.feed_forward": "relu", "training.learning_rate": "0.003"},
        {"model.feed_forward": "swiglu", "training.learning_rate": "0.003"},
        {"model.feed_forward": "relu", "training.learning_rate": "0.1"},
        {"model.feed_forward": "relu", "training.learning_rate": "0.2"},
    ]
    alone = [kernels(RBF, EXP), kernels(RBF, EXP, training={"steps": 7, "learning_rate": 0.1})]
    assert all(set(setting.setting) == set(SHOWN_FACTORS) for setting in answer_of(claim(), *joined(*alone)).settings)


def test_what_a_side_has_in_several_ways_is_averaged_over() -> None:
    (outcome,) = of_choices(PRODUCT, SUM, {**SUM, "inject": "per-layer"}).outcomes
    assert outcome.cells.over == ("inject", "value") and len(outcome.cells.b) == 2


@pytest.mark.parametrize(("clips", "compared", "over"), [((4, 16, 8), (16,), ()), ((4, 8), (4, 8), ("clip",))])
def test_an_option_of_one_side_has_its_default_unless_no_cell_has_that(
    clips: tuple[int, ...], compared: tuple[int, ...], over: tuple[str, ...]
) -> None:
    cells = [cell("product", position="product"), *(cell(f"{clip}", position="lookup", clip=clip) for clip in clips)]
    sides = Contrast.model_validate({"a": PRODUCT, "b": {"position": "lookup"}, "expect": "better"})
    (outcome,) = finding(claim(sides), cells, [item for each in cells for item in seeded(each.id, *EXP)]).outcomes
    assert (ids(outcome.cells.b), outcome.cells.over) == (tuple(map(str, compared)), over)
    assert outcome.cells.confounders == ("placement",)


def kernels_at(*temperatures: tuple[str, float]) -> list[CellRecord]:
    return [cell(f"{kernel} {heat}", kernel=kernel, temperature=heat) for kernel, heat in temperatures]


def test_an_option_that_the_words_of_both_sides_bring_along_has_to_agree() -> None:
    cells = kernels_at(("rbf", 1.0), ("rbf", 2.0), ("exponential", 1.0), ("exponential", 0.5))
    runs = [item for each in cells for item in seeded(each.id, *(EXP if each.id.endswith("1.0") else [50.0, 60.0]))]
    (outcome,) = finding(claim(), cells, runs).outcomes
    assert (ids(outcome.cells.a), ids(outcome.cells.b), outcome.cells.over, outcome.cells.confounders) == (
        ("rbf 1.0",),
        ("exponential 1.0",),
        (),
        (),
    )


def test_cells_at_different_temperatures_alone_are_not_compared_by_their_kernels() -> None:
    cells = kernels_at(("rbf", 2.0), ("exponential", 1.0))
    (outcome,) = finding(claim(), cells, [item for each in cells for item in seeded(each.id, *EXP)]).outcomes
    assert outcome.reason == "no such cells: the closest cells of both sides also differ in temperature"


def test_an_option_of_a_custom_component_is_averaged_and_named_like_any_other(components: None) -> None:
    cells = [custom(power) for power in ("1.0", "2.0")] + [cell("exponential", kernel="exponential")]
    runs = [item for each in cells for item in seeded(each.id, *(RBF if each.id == "2.0" else EXP))]
    (outcome,) = finding(claim(contrast(a=TSALLIS)), cells, runs).outcomes
    assert (ids(outcome.cells.a), outcome.cells.over) == (("1.0", "2.0"), ("power",))
    sides = {side: {"kernel": TSALLIS, "power": power} for side, power in (("a", 2), ("b", 1))}
    (outcome,) = finding(claim(Contrast.model_validate({**sides, "expect": "better"})), cells, runs).outcomes
    assert (ids(outcome.cells.a), ids(outcome.cells.b), outcome.cells.confounders) == (("2.0",), ("1.0",), ())


def custom(power: str, **choices: Any) -> CellRecord:
    """A cell with a kernel from a file, as a database has it."""
    plain = cell(power, **choices).spec.plain
    own = {
        "kernel": TSALLIS,
        "power": float(power),
        "components": {TSALLIS: recorded("kernel", TSALLIS, SOURCE % "below=9")},
    }
    return replace(cell(power, **choices), spec=ResolvedSpec({**plain, **own}))


def test_settings_that_searches_chose_keep_no_cells_apart() -> None:
    searches = [trials.search(kernel) for kernel in ("rbf", "exponential")]
    chosen = {"rbf": 0.01, "exponential": 0.03}
    cells = [cell(f"{first}1", kernel=first, training={"learning_rate": rate}) for first, rate in chosen.items()]
    runs = [*seeded("rbf1", *RBF), *seeded("exponential1", *EXP)]
    tuned = replace(sweep(cells, runs), searches=tuple(searches))
    (setting,) = answers([claim()], [tuned])[0].settings
    (outcome,) = setting.outcomes
    assert (ids(outcome.cells.a), ids(outcome.cells.b), outcome.cells.over) == (("rbf1",), ("exponential1",), ())
    assert outcome.estimate == only(contrast(), RBF, EXP).estimate
    assert outcome.cells.searched and not only(contrast(), RBF, EXP).cells.searched
    plain = sweep([cells[0], cell("linear", kernel="linear", training={"learning_rate": 0.01})], seeded("linear", *EXP))
    (setting,) = answers([claim(contrast(b="linear"))], [tuned, plain])[0].settings
    assert ids(setting.outcomes[0].cells.a) == ("rbf1",), "another sweep planned it beside one that nobody searched"
    (typed,) = finding(claim(), cells, runs).outcomes
    assert typed.reason == "no such cells: the closest cells of both sides also differ in training.learning_rate"
    where = contrast(where={"training.learning_rate": 0.01})
    assert answers([claim(where)], [tuned])[0].settings[0].outcomes[0].reason == "no such cells"


def test_an_option_of_both_sides_that_agrees_is_averaged_over() -> None:
    cells = kernels_at(*((kernel, heat) for kernel in ("rbf", "exponential") for heat in (1.0, 2.0)))
    (outcome,) = finding(claim(), cells, [item for each in cells for item in seeded(each.id, *EXP)]).outcomes
    assert (len(outcome.cells.a), len(outcome.cells.b), outcome.cells.over) == (2, 2, ("temperature",))


def test_what_follows_from_a_factor() -> None:
    assert {"placement", "inject", "encoding"} <= following(["position"]) and "kernel" not in following(["position"])
    assert following(["value"]) == {"encoding"}
    assert following([]) == following(["kernel"]) == frozenset()


def test_n_is_that_of_the_cell_with_the_fewest_scores() -> None:
    outcome = only(contrast(), RBF, EXP[:2])
    value, error, _ = welch([(1, RBF), (-1, EXP[:2])])
    assert outcome.cells.n == 2
    assert outcome.estimate and (outcome.estimate.value, outcome.estimate.error) == pytest.approx((value, error))


def test_no_runs_are_no_cells() -> None:
    cells, _ = kernels([], [])
    waiting = [run(each.id, 0, state=RunState.PENDING, id=index) for index, each in enumerate(cells)]
    for result in (answers([claim()], [])[0], answer_of(claim(), cells, []), answer_of(claim(), cells, waiting)):
        (only_one,) = result.settings
        assert (only_one.verdict, only_one.more, only_one.setting) == (UNTESTED, None, {})
        assert [(outcome.reason, outcome.more) for outcome in only_one.outcomes] == [("no such cells", None)]


def test_a_cell_of_several_sweeps_counts_once_with_the_runs_of_all() -> None:
    cells, runs = kernels(RBF, EXP)
    first, second = sweep(cells, runs[:6]), sweep(cells, [*runs[4:]])
    assert answers([claim()], [first, second])[0] == answer_of(claim(), cells, runs)


def test_another_metric_may_decide() -> None:
    cells = [cell("rbf", kernel="rbf"), cell("exponential", kernel="exponential")]
    runs = [run("rbf", seed, 5.0 + seed, 1.0, id=seed) for seed in range(3)]
    runs += [run("exponential", seed, 0.1 * seed, 9.0, id=10 + seed) for seed in range(3)]
    assert finding(claim(contrast(metric="valid/bleu")), cells, runs).verdict is HOLDS
    metrics = {each.id: {"test/perplexity": 9.0 if each.id < 10 else 8.0} for each in runs}
    (setting,) = answers([claim(contrast(metric="perplexity"))], [sweep(cells, runs, metrics=metrics)])[0].settings
    (outcome,) = setting.outcomes
    assert outcome.metric and outcome.metric.name == "perplexity"
    assert outcome.estimate and outcome.estimate.value == pytest.approx(-log(9 / 8))
    none = finding(claim(contrast(metric="word_perplexity")), cells, runs)
    assert none.outcomes[0].reason == "no such cells"


def lengths(*scores: Mapping[str, Sequence[float]]) -> SweepRecord:
    """Cells whose two evaluations, at 128 and 256 tokens, gave each seed these perplexities."""
    requests = [{"name": "l", "settings": {"length": int(length)}} for length in ("128", "256")]
    records = [cell(f"c{index}", task="prediction", kernel=kernel) for index, kernel in enumerate(("rbf", "linear"))]
    runs, built = [], {}
    for record, of_length in zip(records, scores, strict=False):
        spec = record.spec.known
        assert spec
        values = seeded(record.id, *[5.0 + seed for seed in range(len(of_length["128"]))])
        runs += values
        for each in requests:
            result = resolve_evaluation(
                spec, EvaluationRequest("l", EvaluationSettings.model_validate(each["settings"]))
            )
            for trained, score in zip(values, of_length[str(result.settings["length"])], strict=True):
                numbers = {"loss": log(score), "perplexity": score}
                kept = EvaluationRecord(result.id, result.settings, 0.0, 9, {}, None, numbers)
                built.setdefault(trained.id, {})[result.id] = kept
    record = sweep(records[: len(scores)], runs)
    return replace(record, grid={**record.grid, "evaluations": requests}, evaluations=built)


def of_lengths(a: Mapping[str, str], b: Mapping[str, str], *sweeps: SweepRecord, **more: Any) -> ContrastedCells:
    compared = Contrast.model_validate({"a": a, "b": b, "expect": "better", "metric": "perplexity", **more})
    varied = frozenset({*a, *b, "position", "placement"})
    (cells,) = contrasted_cells(compared, RecordedRuns(sweeps), varied).values()
    return cells


def test_evaluations_count_from_every_sweep_that_has_runs_of_the_cell() -> None:
    whole = lengths({"128": [3.0, 6.0, 12.0], "256": [3.1, 6.1, 12.5]})
    parts = [
        replace(whole, runs=runs, evaluations={run.id: whole.evaluations[run.id] for run in runs})
        for runs in (whole.runs[:1], whole.runs[1:])
    ]
    sides = {"evaluation.length": "128"}, {"evaluation.length": "256"}
    assert of_lengths(*sides, *parts).estimate == of_lengths(*sides, whole).estimate


def test_evaluations_of_the_same_runs_are_compared_seed_by_seed() -> None:
    """The seeds differ a hundred times as much as the two lengths do."""
    first = [3.0, 6.0, 12.0]
    second = [each * gain for each, gain in zip(first, (1.010, 1.011, 1.012), strict=True)]
    length = {"128": first, "256": second}
    result = of_lengths({"evaluation.length": "128"}, {"evaluation.length": "256"}, lengths(length))
    differences = [log(each / other) for each, other in zip(second, first, strict=True)]
    expected = summarise(differences)
    assert expected and expected.sd and result.estimate
    assert result.estimate.value == pytest.approx(expected.mean)
    assert result.estimate.error == pytest.approx(expected.sd / sqrt(3)) and result.estimate.df == 2
    # A single score has the root of a half of the spread of a difference.
    assert result.estimate.sd == pytest.approx(expected.sd / sqrt(2))


def test_a_missing_evaluation_leaves_its_seed_out_on_both_sides() -> None:
    sides = {"evaluation.length": "128"}, {"evaluation.length": "256"}
    whole = lengths({"128": [3.0, 6.0, 12.0, 24.0], "256": [3.1, 6.1, 12.5, 9.0]})
    *runs, last = whole.runs
    (first, *_) = whole.evaluations[last.id].items()
    lacking = replace(whole, evaluations={**whole.evaluations, last.id: dict([first])})
    without = replace(whole, runs=tuple(runs), evaluations={run.id: whole.evaluations[run.id] for run in runs})
    assert of_lengths(*sides, lacking).estimate == of_lengths(*sides, without).estimate


def test_cells_with_runs_of_their_own_are_independent_at_one_length() -> None:
    record = lengths({"128": [3.0, 4.0], "256": [1.0, 1.0]}, {"128": [6.0, 9.0], "256": [1.0, 1.0]})
    result = of_lengths({"kernel": "rbf"}, {"kernel": "linear"}, record, where={"evaluation.length": "128"})
    parts = [summarise([log(score) for score in scores]) for scores in ((3.0, 4.0), (6.0, 9.0))]
    plain = contrast_of([(-1.0, parts[0]), (1.0, parts[1])])
    assert plain and result.estimate and result.estimate.interval() == pytest.approx(plain.interval())


def test_a_contrast_that_names_no_setting_of_an_evaluation_is_of_tests_alone() -> None:
    record = lengths({"128": [3.0, 4.0], "256": [1.0, 1.0]}, {"128": [6.0, 9.0], "256": [1.0, 1.0]})
    each = Contrast.model_validate({"a": {"kernel": "rbf"}, "b": {"kernel": "linear"}, "expect": "better"})
    (contrasted_cell,) = contrasted_cells(each, RecordedRuns([record]), frozenset({"kernel"})).values()
    assert [cell.id for cell in (*contrasted_cell.a, *contrasted_cell.b)] == ["c0", "c1"]


def test_a_claim_may_name_the_lengths_of_several_trainings() -> None:
    """Those of another training than the setting's are no part of the claim there."""
    parts = [
        Contrast.model_validate(
            {
                "where": {"kernel": "rbf", "training.length": trained},
                "a": {"evaluation.length": trained},
                "b": {"evaluation.length": 2 * trained},
                "expect": "better",
                "metric": "perplexity",
            }
        )
        for trained in (128, 512)
    ]
    record = lengths({"128": [3.0, 3.01], "256": [4.0, 4.01]})
    assert record.cells[0].spec.word("training.length") == "128"
    (answer,) = answers([Claim(id="one", statement="One.", holds=Rule(all=tuple(parts)))], [record])
    (setting,) = answer.settings
    assert (setting.verdict, len(setting.outcomes)) == (Verdict.HOLDS, 1)
    (answer,) = answers([Claim(id="one", statement="One.", holds=Rule(all=tuple(parts[1:])))], [record])
    assert [each.verdict for each in answer.settings] == [Verdict.NOT_TESTED]


def test_where_a_rule_added_seeds_the_interval_is_the_one_that_tables_have() -> None:
    """It allows for all looks, and is over the seeds of the last look that both cells had."""
    rule = {"seed_rule": {"min": 3, "max": 12, "until": "decided"}}

    def outcome(sweeps: list[SweepRecord]) -> ContrastOutcome:
        ((setting,),) = (answer.settings for answer in answers([claim()], sweeps))
        (actual,) = setting.outcomes
        return actual

    more = [*EXP, 29.0, 31.0]
    cells, runs = kernels(RBF, more)
    by_rule = replace(sweep(cells, runs), grid={**sweep(cells, runs).grid, **rule})
    result = outcome([by_rule])
    look = Look(len(RBF), 3, 12)
    parts = [(1.0, summarise(RBF)), (-1.0, summarise(more[: len(RBF)]))]
    expected = contrast_of(parts, look=look)
    assert expected and result.estimate == expected and result.cells.n == len(RBF)
    fixed = outcome([sweep(cells, runs)])
    assert fixed.estimate and fixed.estimate.look is None and fixed.cells.n == len(RBF)
    widths = [high - low for low, high in (result.estimate.interval(), fixed.estimate.interval())]
    assert widths[0] > 1.5 * widths[1]
    # The cells of another sweep that fixed its seeds are the same runs, however that one is counted.
    both = outcome([sweep(cells, runs), by_rule])
    assert both.estimate == result.estimate
