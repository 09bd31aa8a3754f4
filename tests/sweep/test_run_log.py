"""The log of a run says now and then how far it is."""

import re

import pytest

from kdx.sweep import run_log
from kdx.sweep.run_log import EVERY, RunLog


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(run_log, "time", found)
    return found


def lines(capsys) -> list[str]:
    """What was written, without the time of day."""
    written = capsys.readouterr()
    assert written.out == ""
    found = [re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ (.*)", line) for line in written.err.splitlines()]
    return [line[1] for line in found if line]


def log(steps: int = 1000) -> RunLog:
    return RunLog(steps, "bleu", lambda: 1_250_000_000)


def test_the_first_step_has_a_line_and_then_time_decides(clock, capsys):
    own = log()
    own.progress(1, 9.21034, 0.5)
    clock.now += EVERY / 2
    own.progress(100, 8.0, 0.5)
    clock.now += EVERY / 2
    own.progress(301, 7.125, 0.123456)
    assert lines(capsys) == [
        "step 1 of 1,000, loss 9.21, 1.25 GB at most, gradient norm 0.5",
        "step 301 of 1,000, loss 7.125, 10 steps/s, about 70 s left, 1.25 GB at most, gradient norm 0.123",
    ]


def test_the_rate_is_that_of_this_attempt_alone(clock, capsys):
    own = log()
    own.progress(501, 2.0, None)
    clock.now += 50
    own.progress(601, 2.0, None)
    assert lines(capsys)[1] == "step 601 of 1,000, loss 2, 2 steps/s, about 3 min left, 1.25 GB at most"


def test_a_validation_has_a_line_at_once_with_loss_and_metric_of_the_selection(clock, capsys):
    own = log()
    own.progress(1, 9.0, None)
    clock.now += 1
    own.progress(11, 8.0, None)
    for name, value in {"valid/loss": 3.25, "valid/bleu": 31.23, "valid/entropy/encoder-self": 1.0}.items():
        own.measured(name, value)
    own.measured("train/loss", 8.0)
    own.recorded(11)
    own.recorded(11)
    (line,) = lines(capsys)[1:]
    assert line.endswith("10 steps/s, about 99 s left, 1.25 GB at most: valid/loss 3.25, valid/bleu 31.23")


def test_the_test_has_a_line_of_its_own_step(clock, capsys):
    own = log()
    own.progress(1000, 1.0, None)
    own.measured("test/bleu", 30.5)
    own.recorded(800)
    assert lines(capsys)[1] == "step 800 of 1,000: test/bleu 30.5"


def test_a_gradient_is_read_only_where_its_line_is_written(clock, capsys):
    reads = []

    class OnAGpu:
        def __float__(self) -> float:
            reads.append(clock.now)
            return 2.0

    own = log()
    for step in range(1, 100):
        own.progress(step, 1.0, OnAGpu())
    assert len(reads) == len(lines(capsys)) == 1


def test_a_loss_that_is_no_number_is_shown(clock, capsys):
    log().progress(1, float("nan"), float("inf"))
    assert lines(capsys) == ["step 1 of 1,000, loss nan, 1.25 GB at most, gradient norm inf"]


def test_a_full_disk_ends_no_run(clock, monkeypatch):
    class Full:
        def write(self, text):
            raise OSError("no space")

        flush = write

    monkeypatch.setattr("sys.stderr", Full())
    log().progress(1, 2.0, None)
