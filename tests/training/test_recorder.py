"""What training tells a recorder, and in what order."""

import inspect
import json
import math

import pytest
from runs import STEPS, TASKS, Kept

from kdx.sweep.recorder import DatabaseRecorder
from kdx.training.recorder import Recorder
from kdx.training.run import PARAMETERS

BOTH = pytest.mark.parametrize("task", TASKS)


@BOTH
def test_a_run_begins_once_and_before_anything_else(task, unbroken):
    whole = unbroken(task)
    (begin,) = whole.of("begin")
    assert whole.events[0] == begin
    _, environment, data_fingerprint, code_fingerprint, resumed_step, changes, data_facts = begin
    assert (resumed_step, changes) == (0, None)
    assert json.loads(json.dumps(environment)) == environment
    assert len(data_fingerprint) == len(code_fingerprint) == 64
    assert json.loads(json.dumps(data_facts)) == data_facts
    assert {"vocabulary_size", "vocabulary", "tokenisation", "test/unknown_rate", "test/text"} <= data_facts.keys()
    assert ("test/longest_context" in data_facts) is (task == "prediction")


@BOTH
def test_nothing_is_left_unflushed(task, unbroken):
    assert unbroken(task).events[-1] == ("flush", STEPS)


@BOTH
def test_every_row_is_told_once_as_a_float_at_a_step_that_is_done(task, unbroken):
    told = unbroken(task).of("metric")
    assert len({(name, step) for _, name, step, _ in told}) == len(told)
    assert all(type(value) is float and math.isfinite(value) for *_, value in told)
    assert all(1 <= step <= STEPS for _, name, step, _ in told if name != PARAMETERS)


@BOTH
def test_the_numbers_that_training_changes_are_counted_once_before_the_first_step(task, unbroken):
    whole = unbroken(task)
    assert [event[1:] for event in whole.of("metric") if event[1] == PARAMETERS] == [(PARAMETERS, 0, counted(whole))]
    assert whole.of("metric")[0][1] == PARAMETERS


def counted(done) -> float:
    """From the weights that were tested, in which what is shared stands twice."""
    distinct = {tensor.untyped_storage().data_ptr(): tensor.numel() for tensor in done.weights.values()}
    return float(sum(distinct.values()))


@BOTH
def test_progress_is_told_after_every_step_after_the_rows_of_that_step(task, unbroken):
    events = [event for event in unbroken(task).events if event[0] == "progress" or event[1] == "train/loss"]
    assert [event[0] for event in events] == ["metric", "progress"] * STEPS
    assert [event[1] for event in events if event[0] == "progress"] == list(range(1, STEPS + 1))


def test_translations_are_told_once_and_before_the_last_flush(unbroken):
    ((_, name, lines),) = unbroken("translation").of("outputs")
    assert name == "test/translations" and lines


@BOTH
def test_the_documents_of_a_test_are_told_once_and_give_its_loss(task, unbroken):
    ((_, found),) = unbroken(task).of("documents")
    assert sum(found.sums["nats"]) / sum(found.sums["targets"]) == pytest.approx(unbroken(task).column("test/loss")[12])


@pytest.mark.parametrize("task", TASKS)
def test_a_run_shows_life_at_every_batch_of_a_validation_and_of_the_test(task, unbroken):
    """Else a long validation would look like a run that hangs."""
    kinds = [event[0] for event in unbroken(task).events]
    last_step = len(kinds) - kinds[::-1].index("progress")
    assert kinds.index("alive") < last_step
    assert kinds[last_step:].count("alive") >= 2


@pytest.mark.parametrize("kept", [Kept, DatabaseRecorder])
def test_recorders_hear_all_that_is_told(kept):
    for name, method in inspect.getmembers(Recorder, inspect.isfunction):
        if not name.startswith("_"):
            assert list(inspect.signature(getattr(kept, name)).parameters) == list(inspect.signature(method).parameters)
