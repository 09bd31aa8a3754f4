"""An evaluation is recorded once, beside a completed run; only one that failed gives way."""

import math
from dataclasses import replace

import pytest

from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings
from kdx.grid.plan import Plan
from kdx.store import evaluations, reading
from kdx.store.check import check
from kdx.store.claims import claim
from kdx.store.database import Database, open_database
from kdx.store.evaluations import EvaluationResult
from kdx.store.recording import RunWriter
from kdx.store.records import CODE, DocumentRecord, Provenance
from kdx.store.schema import bits_of

MADE = EvaluationResult(
    "a" * 32,
    {"length": 128, "split": "test"},
    "b" * 64,
    {"torch": "2"},
    "code",
    "data",
    127,
    {"loss": "mean"},
    {"loss": 0.1, "perplexity": math.nan, "other": -0.0},
)
FAILED = EvaluationResult("c" * 32, {"length": 9}, None, error="too long")


@pytest.fixture
def run(database: Database, sweep_id: int) -> int:
    """A completed run."""
    attempt = claim(database, 1, "me", 60.0)
    assert attempt
    RunWriter(database, 1, "me", attempt).complete(1.0, 10, 1.0, {}, 10)
    return 1


def test_an_evaluation_comes_back_as_it_was_made(database, run):
    sums = DocumentRecord("article", {"targets": [3.0, 2.0], "nats": [0.1 + 0.2, 1e-300]})
    facts = {"torch": "2", CODE: {"kdx.models.a": "1"}}
    assert evaluations.record(database, run, replace(MADE, environment=facts, documents=sums))
    assert evaluations.record(database, run, FAILED)
    evaluation, failed = evaluations.of_runs(database, [run])[run].values()
    assert (evaluation.settings, evaluation.longest_context) == (MADE.settings, 127)
    assert evaluation.definitions == {"loss": "mean"}
    assert {name: bits_of(value) for name, value in evaluation.metrics.items()} == {
        name: bits_of(value) for name, value in MADE.metrics.items()
    }
    modules = {"kdx.models.a": "1"}
    assert evaluation.provenance == Provenance("data", "code", {"torch": "2"}, {"loss": "mean"}, modules=modules)
    assert evaluation.documents == sums
    assert (failed.provenance, failed.documents) == (None, None)
    errors = {MADE.settings_id: None, FAILED.settings_id: "too long"}
    assert evaluations.recorded(database, [reading.load_run(database, run).cell_id]) == {run: errors}
    assert check(database).faults == ()


def test_one_that_is_there_stays(database, run):
    evaluations.record(database, run, MADE)
    before = evaluations.of_runs(database, [run])
    assert not evaluations.record(database, run, replace(MADE, metrics={"loss": 7.0}))
    assert not evaluations.record(database, run, replace(FAILED, settings_id=MADE.settings_id))
    assert repr(evaluations.of_runs(database, [run])) == repr(before)


def test_one_that_failed_gives_way_or_is_forgotten(database, run):
    assert evaluations.record(database, run, FAILED)
    assert evaluations.record(database, run, replace(MADE, settings_id=FAILED.settings_id))
    (found,) = evaluations.of_runs(database, [run])[run].values()
    assert found.error is None and found.metrics["loss"] == 0.1
    evaluations.record(database, run, replace(FAILED, settings_id="d" * 32))
    assert evaluations.forget_failed(database, [run]) == 1
    assert [evaluation.error for evaluation in evaluations.of_runs(database, [run])[run].values()] == [None]


def test_an_error_with_what_no_database_keeps_is_recorded(database, run):
    assert evaluations.record(database, run, replace(FAILED, error="no file /data/\udcff\0"))
    (failed,) = evaluations.of_runs(database, [run])[run].values()
    assert failed.error is not None and failed.error.startswith("no file /data/")


def test_a_run_that_is_not_completed_has_none(database, sweep_id):
    assert not evaluations.record(database, 2, MADE)
    assert evaluations.of_runs(database, [2]) == {}


def test_several_at_once_make_one_row(database, run, in_processes):
    answers = in_processes(lambda: _record(database.name, run), 4)
    assert sorted(answers) == ["False", "False", "False", "True"]
    assert len(evaluations.of_runs(database, [run])[run]) == 1


def _record(address: str, run: int) -> bool:
    with open_database(address, write=True) as opened:
        return evaluations.record(opened, run, MADE)


def test_what_a_sweep_asks_for_is_kept_with_its_grid(database, sweep_id, plan_of):
    asked = EvaluationRequest("longer", EvaluationSettings(length=128))
    evaluations.ask_for(database, sweep_id, Plan("a", (), (), evaluations=(asked,)))
    asked_for = [{"name": "longer", "settings": {"length": 128}}]
    assert reading.load_sweep(database).grid == {**plan_of().grid, "evaluations": asked_for}
