"""Signals stop a run at a safe point, in whatever part of it they arrive; and a recorder prunes it."""

import os
import signal

import pytest
import torch
from runs import TASKS, VALIDATIONS, Kept, cell, run, same_bits

from kdx.training.module import TaskModule
from kdx.training.run import train as train_run
from kdx.training.stopping import Stopped, StopRequest

SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)


@pytest.fixture(autouse=True)
def _handlers():
    """The tests' own handlers come back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_being_stopped_is_no_error_that_a_handler_could_swallow():
    assert not issubclass(Stopped, Exception)


@SIGNALS
@pytest.mark.parametrize(
    ("part", "at_step", "resumes_after"),
    [
        ("training_step", 2, 3),
        ("training_step", 6, 7),
        ("validation_step", 5, 5),
        ("validation_step", 12, 0),
        ("test_step", 12, 0),
    ],
    ids=["before any validation", "training", "validation", "last validation", "test"],
)
def test_a_signal_stops_the_run_which_then_ends_the_same(
    number, part, at_step, resumes_after, home, tmp_path, unbroken, monkeypatch
):
    whole, stop, original = unbroken("prediction"), StopRequest(), getattr(TaskModule, part)

    def interrupted(module, batch, index):
        if module.trainer.global_step == at_step and not stop.asked:
            os.kill(os.getpid(), number)
        return original(module, batch, index)

    monkeypatch.setattr(TaskModule, part, interrupted)
    stop.listen()
    with pytest.raises(Stopped):
        train_run(whole.spec, 0, folder=tmp_path, recorder=Kept(), stop=stop, home=home)
    monkeypatch.undo()
    resumed = run(whole.spec, tmp_path, home)
    assert min(resumed.column("train/loss")) == resumes_after + 1
    assert all(resumed.rows[key] == whole.rows[key] for key in resumed.rows)
    assert same_bits(resumed.weights, whole.weights)


@SIGNALS
def test_after_a_run_signals_go_where_they_went_before(number, train):
    before = signal.getsignal(number)
    train(cell("prediction", steps=2))
    assert signal.getsignal(number) == before


PRUNED = {5: "worse than the median"}


def pruned_after(whole, step: int, done) -> None:
    """What a run pruned at a validation leaves: the rows up to there, its best weights, and nothing to go on from."""
    assert (done.outcome.pruned, done.outcome.step, done.outcome.diverged) == (PRUNED[step], step, None)
    assert (done.outcome.valid_step, done.outcome.test_score) == (step, None)
    assert done.rows == {key: value for key, value in whole.rows.items() if key[1] <= step}
    (weights,) = done.folder.glob("*.ckpt")
    assert done.outcome.weights_sha256 in weights.name and weights.name.startswith(f"best-{step:09d}.")
    kept = [path for path in whole.checkpoints("weights") if path.name.startswith(f"weights-{step:09d}.")]
    assert same_bits(done.weights, torch.load(kept[0], weights_only=True))


@pytest.mark.parametrize("task", TASKS)
def test_a_run_that_is_pruned_keeps_its_rows_and_best_weights_and_is_not_tested(task, unbroken, train):
    whole = unbroken(task)
    done = train(whole.spec, recorder=Kept(prune_at=PRUNED))
    pruned_after(whole, 5, done)
    assert done.lines is None


@pytest.mark.parametrize("average", [0, 2])
def test_a_recorder_is_asked_after_each_validation_but_the_last(unbroken, average):
    whole = unbroken("prediction", 1, average)
    asked = [event for event in whole.events if event[0] == "asked"]
    assert [step for _, step, _ in asked] == VALIDATIONS[:-1]
    for _, step, metrics in asked:
        assert metrics == {name: value[step] for name in metrics for value in [whole.column(f"valid/{name}")]}
        assert "loss" in metrics


def test_a_run_without_its_best_weights_keeps_the_mean_of_those_it_would_have_tested(unbroken, train):
    whole = unbroken("prediction", 1, 2)
    done = train(whole.spec, recorder=Kept(prune_at={10: "slow"}))
    (weights,) = done.folder.glob("*.ckpt")
    assert weights.name.startswith("average-000000010.")
    first, second = ({path.name[8:17]: path for path in whole.checkpoints("weights")}[f"{at:09d}"] for at in (5, 10))
    one, other = (torch.load(path, weights_only=True) for path in (first, second))
    mean = {name: ((one[name].double() + other[name]) / 2).to(one[name].dtype) for name in one}
    assert same_bits(done.weights, mean)
    assert done.outcome.pruned == "slow" and not done.column("valid/average/loss")


@pytest.mark.parametrize("killed", ["kdx.training.run._keep", "runs.delete_resume_checkpoints"])
def test_a_run_that_is_killed_while_it_is_pruned_ends_pruned_and_is_not_asked_again(
    killed, unbroken, home, tmp_path, monkeypatch
):
    whole = unbroken("prediction")

    class Killed(BaseException):
        pass

    def dies(*_):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        # Before the weights that it keeps are written, or when they are and the outcome is yet to be recorded.
        patch.setattr(killed, dies)
        run(whole.spec, tmp_path, home, recorder=Kept(prune_at=PRUNED))
    again = run(whole.spec, tmp_path, home, recorder=Kept())
    assert not again.of("asked") and not again.of("progress") and not again.of("metric")
    (begin,) = again.of("begin")
    assert begin[4] == 5
    again.events += [("metric", *key, value) for key, value in whole.rows.items() if key[1] <= 5]
    pruned_after(whole, 5, again)
