"""What a cell's runs come to."""

from math import e, exp, inf, nan, sqrt

import pytest
from scipy import stats
from sweeps import cell, metric_of, run, scored, seeded

from kdx.grid.plan import Shown
from kdx.report.selection.cells import Cell, State, cell_of
from kdx.report.statistics.by_document import Documents, by_document
from kdx.report.statistics.estimates import Summary, contrast
from kdx.store.records import DocumentRecord, RunRecord, RunState

DIVERGED, FAILED, PENDING = RunState.DIVERGED, RunState.FAILED, RunState.PENDING
MEMORY = "torch.OutOfMemoryError: CUDA out of memory."


def cell_from(*runs: RunRecord, task: str = "translation", **options: object) -> Cell:
    result = cell_of(cell("a", task), runs, {}, **options)
    assert result
    return result


@pytest.mark.parametrize(
    ("runs", "state"),
    [
        ([run("a", 0, 1.0, 2.0), run("a", 1, state=DIVERGED), run("a", 2, state=FAILED)], State.VALUE),
        ([run("a", 0, state=DIVERGED), run("a", 1, state=FAILED), run("a", 2, state=PENDING)], State.DIVERGED),
        ([run("a", 0, state=FAILED), run("a", 1, state=PENDING)], State.MISSING),
        ([run("a", 0, state=FAILED), run("a", 1, state=FAILED, error=MEMORY)], State.FAILED),
        ([run("a", seed, state=FAILED, error=MEMORY) for seed in (0, 1)], State.OUT_OF_MEMORY),
        ([run("a", 0, nan, 2.0)], State.MISSING),
        ([], State.MISSING),
    ],
)
def test_what_stands_where_no_score_does(runs: list[RunRecord], state: State) -> None:
    result = cell_from(*runs)
    assert result.state is state
    assert (result.value is not None) is (state is State.VALUE)


def test_the_mean_stands_even_where_no_seed_can_be_selected() -> None:
    runs = [run("a", 0, nan, 2.0), run("a", 1, nan, 4.0)]
    assert cell_from(*runs, shown=Shown.MEAN).value == 3.0
    assert cell_from(*runs).value is None


def test_a_validation_metric_is_the_one_that_the_cell_was_selected_by() -> None:
    runs = scored("a", (29.0, 31.0), (30.0, 28.0))
    result = cell_from(*runs, metric="valid/bleu")
    assert (result.score, result.seed, result.metric.recorded) == (30.0, 1, "valid/bleu")
    assert result.summary and result.summary.mean == 29.5
    assert cell_of(cell("a"), runs, {}, metric="valid/perplexity") is None


def test_the_expected_score_of_the_best_validation_seed() -> None:
    # By validation from the worst: 34, 31, 28.
    result = cell_from(*scored("a", (29.0, 31.0), (30.0, 28.0), (28.0, 34.0)))
    assert result.expected(1) == pytest.approx(31.0)
    assert result.expected(2) == pytest.approx((31 + 28 + 28) / 3)
    assert result.expected(3) == 28.0 == result.score
    assert result.expected(4) is None and result.expected(0) is None


def test_the_expected_score_follows_a_perplexity_downwards_and_ties_as_the_selection_does() -> None:
    result = cell_from(*scored("a", (9.0, 10.0), (8.0, 11.0), (8.0, 12.0)), task="prediction")
    assert result.expected(3) == 11.0 == result.score


def test_the_chance_of_divergence_has_an_interval() -> None:
    result = cell_from(run("a", 0, state=DIVERGED), run("a", 1, 1.0, 2.0), run("a", 2, state=FAILED))
    assert result.divergence_rate == pytest.approx((0.0945, 0.9055), abs=1e-4)


def test_scores_that_are_no_numbers_are_not_compared() -> None:
    assert cell_from(*seeded("a", 1.0, inf, nan, 2.0)).scores == {0: 1.0, 3: 2.0}
    assert cell_from(*seeded("a", 1.0, inf, nan, 2.0)).compared is None


def test_scores_are_compared_by_their_logarithm_where_they_are_perplexities() -> None:
    result = cell_from(*seeded("a", 1.0, e, e), task="prediction")
    assert result.scores == {0: 0.0, 1: 1.0, 2: 1.0}
    assert result.compared == Summary(3, pytest.approx(2 / 3), pytest.approx(3**-0.5))
    assert result.summary and result.summary.mean == pytest.approx((1 + 2 * e) / 3), "but shown as they are"
    for name, nats in (("word_perplexity", True), ("valid/perplexity", True), ("loss", False), ("bleu", False)):
        assert metric_of(name).in_nats is nats


def test_a_perplexity_that_has_no_logarithm_is_not_compared() -> None:
    for bad in (0.0, -0.0, -1.0):
        result = cell_from(*seeded("a", 2.0, 3.0, bad), task="prediction")
        assert (set(result.scores), result.compared, result.reference) == ({0, 1}, None, None)
        assert cell_from(*seeded("a", 2.0, 3.0, bad)).compared is not None


def test_one_score_is_compared_with_none_but_a_margin_may_be_taken_from_it() -> None:
    result = cell_from(*seeded("a", 30.0))
    assert (result.compared, result.reference) == (None, 30.0)
    assert (cell_from().compared, cell_from().reference) == (None, None)


def test_a_cell_that_shows_no_score_is_compared_with_none() -> None:
    runs = [run("a", 0, nan, 2.0), run("a", 1, nan, 4.0)]
    assert cell_from(*runs).compared is None
    assert cell_from(*runs, shown=Shown.MEAN).compared is not None


def test_a_run_that_learned_only_frequencies_keeps_its_score_and_is_counted() -> None:
    flat = run("a", 1, 3.0, 4.0, undertrained="5.2 nats, 5.1 by frequencies")
    result = cell_from(run("a", 0, 1.0, 2.0), flat, run("a", 2, state=DIVERGED))
    assert (result.undertrained, result.completed, result.score) == (1, 2, 4.0)
    assert [seed.undertrained for seed in result.seeds] == [None, "5.2 nats, 5.1 by frequencies", None]


def test_a_pruned_run_is_over_and_no_seed_of_the_mean():
    runs = [run("a", 0, 1.0, 2.0), run("a", 1, 9.0, 9.0, state=RunState.PRUNED), run("a", 2, state=RunState.RUNNING)]
    result = cell_of(cell("a"), runs, {})
    assert (result.planned, result.completed, result.pruned, result.unfinished) == (3, 1, 1, 1)
    assert (result.score, result.summary.n, result.summary.mean) == (2.0, 1, 2.0)
    assert result.divergence_rate == cell_of(cell("a"), runs[:1], {}).divergence_rate


def documents(*nats: float, unit: str = "block", **sums: list[float]) -> DocumentRecord:
    return DocumentRecord(unit, {"targets": [10.0, 20.0, 30.0], "nats": list(nats), **sums})


def students(result: Cell) -> float:
    """Half of Student's 95% interval of the mean over seeds alone."""
    assert result.summary and result.summary.sd is not None
    return float(stats.t.ppf(0.975, result.summary.n - 1)) * result.summary.sd / sqrt(result.summary.n)


OF_SEEDS = {0: documents(11.0, 19.0, 35.0), 1: documents(12.0, 21.0, 30.0)}
LOSSES = [sum(each.sums["nats"]) / 60 for each in OF_SEEDS.values()]


def with_documents(kept, metric: str = "perplexity", **metrics: float):
    record = cell("a", task="prediction", select={"metric": "valid/perplexity"})
    runs = scored("a", *((exp(loss), exp(loss)) for loss in LOSSES))
    result = cell_of(record, runs, {0: metrics, 1: metrics}, kept, metric=metric, shown=Shown.MEAN)
    assert result
    return result


def test_the_interval_of_a_mean_is_over_documents_too_on_the_scale_of_its_score():
    result, alone = with_documents(OF_SEEDS), with_documents({})
    assert (result.documents, alone.documents) == (Documents("block", 3), None)
    assert result.scores == {seed: pytest.approx(loss) for seed, loss in enumerate(LOSSES)}
    assert result.summary == alone.summary and alone.half_width == pytest.approx(students(alone))
    # A perplexity moves by itself times what its loss moves by.
    parts = by_document("block", [10, 20, 30], [each.sums["nats"] for each in OF_SEEDS.values()])
    mean = contrast([(1.0, result.summary)], [parts.scaled([exp(loss) for loss in LOSSES])])
    assert mean.interval() == pytest.approx(
        (result.summary.mean - result.half_width, result.summary.mean + result.half_width)
    )


@pytest.mark.parametrize(
    "kept",
    [
        {0: OF_SEEDS[0]},
        {0: OF_SEEDS[0], 1: documents(12.0, 21.0, 30.0, unit="article")},
        {0: OF_SEEDS[0], 1: DocumentRecord("block", {"targets": [20.0, 20.0, 20.0], "nats": [12.0, 21.0, 30.0]})},
        {0: DocumentRecord("block", {"targets": [10.0, 20.0, 30.0]}), 1: OF_SEEDS[1]},
    ],
)
def test_where_not_all_seeds_were_added_up_alike_errors_are_over_seeds_alone(kept):
    result = with_documents(kept)
    assert result.documents is None and result.half_width == pytest.approx(students(result))


def test_only_a_mean_over_targets_has_an_error_over_documents():
    assert with_documents(OF_SEEDS, "loss", **{"test/loss": 1.0}).documents
    assert with_documents(OF_SEEDS, "bits_per_byte", **{"test/bits_per_byte": 1.0}).documents is None
    assert with_documents(OF_SEEDS, "perplexity/context=5-8", **{"test/perplexity/context=5-8": 1.0}).documents is None
    assert with_documents(OF_SEEDS, "valid/perplexity").documents is None


def test_a_seed_whose_runs_are_out_of_tables_is_missing() -> None:
    out = run("a", 1, 9.0, 40.0)._replace(invalidated="the corpus was cut")
    result = cell_from(run("a", 0, 1.0, 30.0), out, run("a", 2, 2.0, 32.0))
    assert (result.run_id, result.score, result.summary.n, result.planned) == (2, 32.0, 2, 3)
    assert (result.invalidated, result.completed, result.unfinished) == (1, 2, 0)
    assert [seed.outcome for seed in result.seeds] == ["completed", "invalidated", "completed"]
    alone = cell_from(out)
    assert (alone.state, alone.value, alone.scores) == (State.INVALIDATED, None, {})
    diverged = run("a", 0, state=RunState.DIVERGED)._replace(invalidated="a wrong rate")
    assert (cell_from(diverged).state, cell_from(diverged).diverged) == (State.INVALIDATED, 0)
    assert cell_from(diverged, run("a", 1, state=RunState.PENDING)).state is State.MISSING
    assert cell_from(diverged, run("a", 1, state=RunState.FAILED)).state is State.FAILED


@pytest.mark.parametrize(
    ("metric", "task", "score", "expected"),
    [("bleu", "translation", (98.0, 90.0), (None, 100.0)), ("perplexity", "prediction", (1.2, 4.0), (1.0, None))],
)
def test_an_interval_ends_where_its_metric_does(metric, task, score, expected):
    record = cell("a", task=task, select={"metric": f"valid/{metric}"})
    result = cell_of(record, scored("a", *((each, each) for each in score)), {}, metric=metric)
    assert result and result.interval and result.half_width
    low, high = result.summary.mean - result.half_width, result.summary.mean + result.half_width
    assert result.interval == (expected[0] or low, expected[1] or high)
