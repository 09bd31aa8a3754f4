"""One callback for every test: how it stops, tells signs of life, and draws at random."""

import os
import signal
from types import SimpleNamespace

import pytest
import torch
from runs import Kept, cell

from kdx.training.during_test import DuringTest
from kdx.training.stopping import Stopped, StopRequest


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def during_test(calls) -> DuringTest:
    return DuringTest(7, StopRequest(), lambda: calls.append("alive"))


def drawn(during_test: DuringTest, batch: int) -> float:
    """The first number that the model would draw in a batch."""
    during_test.on_test_batch_start(SimpleNamespace(), SimpleNamespace(), None, batch)
    return torch.rand(()).item()


def test_what_a_batch_draws_depends_on_the_seed_and_its_index_alone(during_test):
    one = drawn(during_test, 0)
    other = drawn(during_test, 1)
    torch.rand(100)
    assert drawn(during_test, 0) == one != other
    assert drawn(DuringTest(8, StopRequest(), lambda: None), 0) not in (one, other)


def test_a_sign_of_life_comes_before_each_batch_and_none_once_it_is_to_stop(during_test, calls):
    drawn(during_test, 0)
    drawn(during_test, 1)
    assert calls == ["alive"] * 2
    during_test.stop.asked = True
    with pytest.raises(Stopped):
        drawn(during_test, 2)
    assert calls == ["alive"] * 2


def test_it_hears_a_signal_although_somebody_else_took_it_over(during_test):
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        during_test.on_test_start(SimpleNamespace(), SimpleNamespace())
        os.kill(os.getpid(), signal.SIGTERM)
        assert during_test.stop.asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_run_gives_signs_of_life_in_its_test(train):
    recorder = Kept()
    train(cell("prediction"), recorder=recorder)
    rows = [(place, event[1]) for place, event in enumerate(recorder.events) if event[0] == "metric"]
    validated = max(place for place, name in rows if name.startswith("valid/"))
    tested = min(place for place, name in rows if name.startswith("test/"))
    assert ("alive", None) in recorder.events[validated:tested]
