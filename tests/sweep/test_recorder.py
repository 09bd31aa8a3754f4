"""What training reports is recorded at times, shown at once, and written to the run's log now and then."""

import json
import re

import pytest
from clock import Clock

from kdx.sweep import recorder as module
from kdx.sweep.messages import PROGRESS_EVERY, receive
from kdx.sweep.recorder import FLUSH_EVERY, LINE_EVERY, DatabaseRecorder, RunLog


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", clock)
    return clock


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
    clock.now += LINE_EVERY / 2
    own.progress(100, 8.0, 0.5)
    clock.now += LINE_EVERY / 2
    own.progress(301, 7.125, 0.123456)
    assert lines(capsys) == [
        "step 1 of 1,000, loss 9.210, 1.25 GB at most, gradient norm 0.5",
        "step 301 of 1,000, loss 7.125, 10 steps/s, about 70 s left, 1.25 GB at most, gradient norm 0.123",
    ]


def test_the_rate_is_that_of_this_attempt_alone(clock, capsys):
    own = log()
    own.progress(501, 2.0, None)
    clock.now += 50
    own.progress(601, 2.0, None)
    assert lines(capsys)[1] == "step 601 of 1,000, loss 2.000, 2 steps/s, about 3 min left, 1.25 GB at most"


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
    assert line.endswith("10 steps/s, about 99 s left, 1.25 GB at most: valid/loss 3.250, valid/bleu 31.23")


def test_the_test_has_a_line_of_its_own_step(clock, capsys):
    own = log()
    own.progress(1000, 1.0, None)
    own.measured("test/bleu", 30.5)
    own.recorded(800)
    assert lines(capsys)[1] == "step 800 of 1,000: test/bleu 30.50"


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


def test_a_full_disk_ends_no_run(clock, monkeypatch):
    class Full:
        def write(self, text):
            raise OSError("no space")

        flush = write

    monkeypatch.setattr("sys.stderr", Full())
    log().progress(1, 2.0, None)


class Kept:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.written: list[tuple[list, int]] = []

    def record(self, rows, step) -> None:
        self.written.append((list(rows), step))

    def together(self, writes) -> None:
        for write in writes:
            write()


def test_rows_wait_a_second_at_most_and_are_written_before_a_checkpoint(channels):
    clock = Clock()
    kept = Kept()
    recorder = DatabaseRecorder(kept, 1, channels[0], clock)
    recorder.metric("a", 1, 1.0)
    recorder.progress(1, 1.0)
    assert kept.written == []
    clock.now += FLUSH_EVERY
    recorder.progress(2, 1.0)
    assert kept.written == [([("a", 1, 1.0)], 2)]
    recorder.metric("a", 3, 0.5)
    recorder.flush(3)  # what a checkpoint asks for first
    assert kept.written[1:] == [([("a", 3, 0.5)], 3)]
    assert recorder.step == 3


def test_rows_are_written_more_rarely_where_writing_takes_long(channels):
    clock = Clock()

    class Slow(Kept):
        def record(self, rows, step) -> None:
            clock.now += 0.095
            super().record(rows, step)

    kept = Slow()
    recorder = DatabaseRecorder(kept, 1, channels[0], clock)
    for step in range(1, 61):
        clock.now += 1.0
        recorder.metric("a", step, 1.0)
        recorder.progress(step, 1.0)
    assert [step for _, step in kept.written] == [1, 11, 21, 31, 41, 51]
    assert sum(len(rows) for rows, _ in kept.written) == 51, "those of the last steps wait"


def test_progress_is_told_now_and_then_and_never_waited_for(channels):
    here, there = channels
    clock = Clock()
    recorder = DatabaseRecorder(Kept(), 5, here, clock)
    recorder.progress(1, 1.0)
    for step in range(2, 4):
        clock.now += PROGRESS_EVERY
        recorder.progress(step, 0.5)
    received = [json.loads(there.recv(1000)) for _ in range(2)]
    assert received == [{"event": "progress", "run": 5, "step": step, "loss": 0.5} for step in (2, 3)]
    # Nobody reads; then nobody is there. Training goes on.
    for step in range(4, 3000):
        clock.now += PROGRESS_EVERY
        recorder.progress(step, 0.5)
    there.close()
    clock.now += PROGRESS_EVERY
    recorder.progress(3000, 0.5)
    assert recorder.step == 3000


def test_a_note_is_told_at_once_and_kept_in_the_log(channels, capsys):
    here, there = channels
    recorder = DatabaseRecorder(Kept(), 5, here)
    recorder.note("resumes from step 5, not 7: …")
    assert receive(there) == {"event": "note", "run": 5, "text": "resumes from step 5, not 7: …"}
    there.close()
    recorder.note("nobody listens")
    assert capsys.readouterr().err == "resumes from step 5, not 7: …\nnobody listens\n"


def test_signs_of_life_are_told_now_and_then(channels):
    moments = iter([0.0, 0.0, 0.1, 5.0])
    recorder = DatabaseRecorder(None, 3, channels[0], lambda: next(moments))
    recorder.alive()
    recorder.alive()
    assert receive(channels[1]) == {"event": "alive", "run": 3}
    channels[1].setblocking(False)
    with pytest.raises(BlockingIOError):
        channels[1].recv(1)
