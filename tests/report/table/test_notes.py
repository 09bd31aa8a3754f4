"""The caption says how its numbers came about: selection, n, split, metrics, and what stands where no score does."""

from dataclasses import replace
from math import nan
from typing import Any

import pytest
from pydantic import ValidationError
from sweeps import cell, run, scored, seeded, sweep

from kdx.errors import KdxError
from kdx.report.tables import Table, tables
from kdx.store.records import CellRecord, Provenance, RunRecord, RunState
from kdx.training.divergence import WORSE

MEMORY = "torch.OutOfMemoryError: CUDA out of memory."


def notes(
    cells: list[CellRecord], runs: list[RunRecord], options: dict[str, Any] | None = None, **rest: Any
) -> list[str]:
    return list(built(cells, runs, options, **rest).notes)


def definitions(
    cells: list[CellRecord], runs: list[RunRecord], options: dict[str, Any] | None = None, **rest: Any
) -> list[str]:
    return list(built(cells, runs, options, **rest).definitions)


def built(cells: list[CellRecord], runs: list[RunRecord], options: dict[str, Any] | None = None, **rest: Any) -> Table:
    table = {"name": "t", "rows": ["kernel"], **(options or {})}
    return tables(sweep(cells, runs, tables=[table], **rest))[0]


def two(*scores: list[float], **choices: Any) -> tuple[list[CellRecord], list[RunRecord]]:
    """Cells rbf and exponential."""
    names = ("rbf", "exponential")
    cells = [cell(name, kernel=name, **choices) for name in names]
    return cells, [each for name, values in zip(names, scores, strict=False) for each in seeded(name, *values)]


def test_a_table_without_cells_says_nothing() -> None:
    assert notes([], []) == definitions([], []) == []


def test_a_mean_says_what_its_interval_is_and_how_weights_were_chosen() -> None:
    assert notes(*two([1.0, 2.0], [3.0, 4.0]), {"cell": "mean"})[0] == (
        "Per cell, the mean test score ± half the width of its 95% interval by Student's t over seeds alone; n = 2 "
        "seeds; each run's weights are those of its best valid/bleu."
    )


def test_each_task_has_its_rule_and_one_rule_of_several_tasks_is_listed_once() -> None:
    cells = [cell("a"), cell("b", "prediction")]
    first = notes(cells, [], {"rows": ["task"]})[0]
    assert first == (
        "Per cell, the test score of the seed with the best valid/bleu (translation) or valid/perplexity (prediction)."
    )
    by_loss = [cell("a", select={"metric": "loss"}), cell("b", "prediction", select={"metric": "loss"})]
    assert notes(by_loss, [], {"rows": ["task"]})[0] == "Per cell, the test score of the seed with the best valid/loss."


def test_cells_of_one_task_that_were_selected_otherwise_are_told_apart() -> None:
    cells = [cell("a"), cell("b", select={"metric": "loss"})]
    sentences = notes(cells, [], {"rows": ["select.metric"], "metric": "bleu"})[0]
    assert "valid/bleu (translation) or valid/loss (translation)" in sentences


def test_selecting_on_the_test_set_is_refused() -> None:
    with pytest.raises(ValidationError, match="`test/bleu` selects on the test set"):
        cell("a", select={"metric": "test/bleu"})
    with pytest.raises(KdxError, match="unknown metric `test/bleu`"):
        notes(*two([1.0], [2.0]), {"metric": "test/bleu"})


@pytest.mark.parametrize(("shown", "chosen"), [("best-seed", "Seed and weights were"), ("mean", "Weights were")])
def test_a_validation_score_says_that_it_was_chosen_by_itself(shown: str, chosen: str) -> None:
    sentences = notes(*two([1.0, 2.0], [3.0, 4.0]), {"metric": "valid/bleu", "cell": shown})
    assert " validation score " in sentences[0] and " test score " not in sentences[0]
    assert sentences[1:] == [f"{chosen} chosen by this very score, which flatters it."]


@pytest.mark.parametrize(
    ("scores", "shown", "number"),
    [
        (([1.0, 2.0], [1.0]), "best-seed", "; beside it mean ± standard deviation over seeds, and their number n in "),
        (([1.0, 2.0], [1.0]), "mean", "over seeds alone, their number n in parentheses; "),
        (([1.0], [2.0]), "best-seed", "; n = 1 seed."),
        (([1.0], [2.0]), "mean", "; n = 1 seed; "),
        # A cell without a score has no n that could differ.
        (([1.0, 2.0], []), "best-seed", "over n = 2 seeds."),
        (([], []), "best-seed", "best valid/bleu."),
        (([], []), "mean", "the mean test score; each run's "),
    ],
)
def test_how_many_seeds_stand_behind_the_numbers(scores: tuple[list[float], ...], shown: str, number: str) -> None:
    assert number in notes(*two(*scores), {"cell": shown})[0]


def test_seeds_that_were_planned_are_listed_where_every_score_lacks_as_many() -> None:
    cells, runs = two([1.0, 2.0], [3.0, 4.0])
    lost = [run(each.id, 2, state=RunState.FAILED, id=index) for index, each in enumerate(cells)]
    assert "over n = 2 of 3 seeds." in notes(cells, [*runs, *lost])[0]
    further = [*runs, *lost, run("rbf", 3, state=RunState.PENDING, id=9)]
    assert "over n = 2 seeds." in notes(cells, further)[0]


def defined(*texts: str | None) -> dict[int, Provenance]:
    """Runs of rbf, then of exponential, with these definitions of BLEU; None: of another metric alone."""
    parts = [{"test/loss": "nats"} if text is None else {"test/bleu": text, "test/loss": "nats"} for text in texts]
    _, runs = two([1.0], [2.0])
    return {first.id: Provenance(None, None, None, sentences) for first, sentences in zip(runs, parts, strict=True)}


def test_a_metrics_definition_is_what_its_runs_recorded() -> None:
    def sentences(*texts: str | None) -> list[str]:
        return definitions(*two([1.0], [2.0]), provenance=defined(*texts))[1:]

    assert sentences("tok:13a", "tok:13a") == ["bleu: tok:13a."]
    # The fairness audit says which cell has which.
    assert sentences("a", "b") == ["bleu (rbf): a.", "bleu (exponential): b."]
    assert sentences("a", None) == ["bleu: a."]
    nothing = dict.fromkeys(defined("a", "b"), Provenance(None, None, None, None))
    assert definitions(*two([1.0], [2.0]), provenance=nothing)[1:] == []


def test_a_validation_metric_has_the_definition_of_its_own_split() -> None:
    cells, runs = two([1.0], [2.0])
    of_both = Provenance(None, None, None, {"test/bleu": "greedy", "valid/bleu": "beam 4"})
    where = dict.fromkeys((each.id for each in runs), of_both)
    assert definitions(cells, runs, {"metric": "valid/bleu"}, provenance=where) == [
        "valid/bleu ↑: higher is better.",
        "valid/bleu: beam 4.",
    ]


LOST = f"diverged k/n: the loss of k of n seeds is not finite, or ended above {WORSE} times that of the first step."
PRUNED = (
    "pruned k/n: k of n seeds were stopped after a validation, before their last step; they have no test score, and no "
    "mean counts them."
)
FLAT = (
    "undertrained k/n: k of n seeds predict the validation set no better than the frequencies of its tokens do (the "
    "unigram distribution of the training set), so their scores say little."
)


@pytest.mark.parametrize(
    ("runs", "sentences"),
    [
        ([run("rbf", 0, state=RunState.DIVERGED)], [LOST]),
        # A score that some seeds never came to is told beside it in the same words.
        ([*scored("rbf", (1.0, 2.0)), run("rbf", 1, state=RunState.DIVERGED)], [LOST]),
        ([run("rbf", 0, state=RunState.FAILED)], ["failed k/n: k of n seeds ended with an error."]),
        (
            [run("rbf", 0, state=RunState.FAILED, error=MEMORY)],
            ["out of memory k/n: the memory of k of n seeds did not suffice."],
        ),
        ([run("rbf", 0, state=RunState.RUNNING)], ["–: no score yet."]),
        ([run("rbf", 0, nan, 2.0)], ["–: no score yet."]),
        ([*scored("rbf", (1.0, 2.0)), run("rbf", 1, 1.0, 2.0, undertrained="5.2 nats, 5.1 by frequencies")], [FLAT]),
        ([*scored("rbf", (1.0, 2.0)), run("rbf", 1, 1.0, state=RunState.PRUNED)], [PRUNED]),
        (scored("rbf", (1.0, 2.0)), []),
    ],
)
def test_only_words_that_stand_in_the_table_are_explained(runs: list[RunRecord], sentences: list[str]) -> None:
    assert notes([cell("rbf", kernel="rbf")], runs)[1:] == sentences


def test_seeds_that_were_added_after_a_look_are_stated() -> None:
    cells, runs = two([1.0, 2.0, 3.0], [4.0, 5.0, 6.5])
    record = replace(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"]}]), seeds_raised=(2, 3))
    assert tables(record)[0].notes[-1].startswith("Seeds were raised from 2 to 3 when results could be read, which ")
    by_rule = {**record.grid, "seed_rule": {"min": 2, "max": 3, "until": "decided"}}
    assert not any("raised" in note for note in tables(replace(record, grid=by_rule))[0].notes)
