"""When Lightning validates, and what it is told to do."""

import pytest
import torch
from runs import STEPS, TASKS, VALIDATIONS, cell, run, same_bits

from kdx.data.batching import StreamBatches
from kdx.data.stream import load_stream
from kdx.vocabulary import Split

BOTH = pytest.mark.parametrize("task", TASKS)


def assert_same(one, other):
    """Rows bit for bit, best weights bit for bit, and all else."""
    assert one.rows == other.rows
    assert_same_end(one, other)


def assert_same_end(one, other):
    assert one.outcome == other.outcome
    assert same_bits(one.weights, other.weights)
    assert one.lines == other.lines


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
