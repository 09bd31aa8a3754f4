"""Signals stop a run at a safe point, in whatever part of it they arrive."""

import os
import signal

import pytest
from runs import Kept, cell, run, same_bits

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
def test_a_signal_is_heard_once_it_is_listened_for(number):
    stop = StopRequest()
    stop.listen()
    assert not stop.asked
    os.kill(os.getpid(), number)
    assert stop.asked


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
