"""When Lightning validates, and what happens during a test."""

import os
import signal
from types import SimpleNamespace

import pytest
import pytorch_lightning as lightning
import torch
from runs import STEPS, TASKS, VALIDATIONS, assert_same, cell, run

from kdx.data.batching import StreamBatches
from kdx.data.stream import load_stream
from kdx.training.lifecycle import DuringTest
from kdx.training.stopping import Stopped, StopRequest
from kdx.vocabulary import Split

BOTH = pytest.mark.parametrize("task", TASKS)


@BOTH
@pytest.mark.parametrize("accumulate", [1, 2])
def test_validation_is_at_every_interval_and_once_at_the_end(task, accumulate, unbroken):
    whole = unbroken(task, accumulate)
    assert [step for _, name, step, _ in whole.of("metric") if name == "valid/loss"] == VALIDATIONS
    assert whole.outcome.step == STEPS


@pytest.mark.parametrize(("every", "expected"), [(4, [4, 8, 12]), (12, [12]), (100, [12]), (11, [11, 12])])
def test_an_interval_that_divides_the_steps_or_exceeds_them_validates_the_end_once(every, expected, train):
    done = train(cell("prediction", validate_every=every))
    assert [step for _, name, step, _ in done.of("metric") if name == "valid/loss"] == expected


@pytest.mark.parametrize("accumulate", [1, 3])
def test_without_an_interval_validation_comes_after_each_pass_over_the_text(accumulate, train, home):
    spec = cell("prediction", validate_every=None, accumulate=accumulate)
    batches = len(StreamBatches(load_stream(spec.data, home).splits[Split.TRAIN], 16, 16))
    every = batches // accumulate
    expected = sorted({*range(every, STEPS + 1, every), STEPS})
    assert 1 < len(expected) < STEPS
    assert list(train(spec).column("valid/loss")) == expected


def test_sixteen_bit_floats_train_with_clipping_and_repeat(home, tmp_path):
    one, other = (run(cell("prediction", precision="bf16"), tmp_path / name, home) for name in ("one", "other"))
    assert one.outcome.diverged is None
    assert_same(one, other)
    assert one.weights["output.weight"].dtype is torch.float32


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


def test_no_callback_of_an_installed_package_takes_part(train, monkeypatch):
    def every_callback(group: str) -> list[lightning.Callback]:
        pytest.fail(f"{group} was read")

    monkeypatch.setattr(
        "pytorch_lightning.trainer.connectors.callback_connector._load_external_callbacks", every_callback
    )
    assert train(cell("prediction")).outcome.step == STEPS
