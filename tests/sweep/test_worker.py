"""However a run ends, the database knows it, and nobody waits for who only watches."""

import contextlib
import errno
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kdx.errors import ChangedError, DatabaseError, KdxError, StorageError
from kdx.grid.load import load_grid
from kdx.grid.spec import CellSpec
from kdx.store import claims, reading, recording
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunRecord, RunState
from kdx.sweep import worker
from kdx.sweep.messages import Work, error_of, receive
from kdx.training.run import RunOutcome
from kdx.training.stopping import Stopped
from kdx.training.sums import DocumentSums

GRID = "name: one\ntask: translation\ndata: {corpus: synthetic-translation}\n"


@pytest.fixture
def claimed(database, tmp_path) -> Work:
    """A claimed run."""
    grid = tmp_path / "grid.yaml"
    grid.write_text(GRID)
    plan = load_grid(grid)
    recording.register(database, plan)
    return claim(database, tmp_path)


def claim(database: Database, folder: Path) -> Work:
    sweep = reading.load_sweep(database)
    (cell,), (run,) = sweep.cells, sweep.runs
    attempt = claims.claim(database, run.id, "me", 60.0)
    assert attempt is not None
    return Work(
        run.id,
        attempt,
        "me",
        str(database.location),
        CellSpec.model_validate(cell.spec.plain).text,
        run.seed,
        str(folder / "files"),
    )


@pytest.fixture(autouse=True)
def signals():
    """Gives signals back to the tests: a worker takes them."""
    taken = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in taken.items():
        signal.signal(number, handler)


@pytest.fixture
def does(monkeypatch, channels, database):
    """Works at an claimed with training replaced; the exit code and the run's record."""
    monkeypatch.setattr(worker, "_log_to", lambda path: None)
    monkeypatch.setattr("kdx.training.stopping.StopRequest.listen", lambda self: None)

    def does(claimed: Work, train) -> tuple[int, RunRecord]:
        monkeypatch.setattr(worker, "train", train)
        code = worker.work(claimed, channels[0])
        return code, reading.load_sweep(database).runs[0]

    return does


def test_a_run_that_learned_is_completed_with_its_scores(does, claimed, database):
    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        assert spec.text == claimed.spec
        recorder.begin({"torch": "2"}, "data", "code", 0, None, {"vocabulary_size": 9})
        recorder.metric("train/learning_rate", 20, 1.5)
        recorder.outputs("test/translations", ["a", "b"])
        return RunOutcome(None, 20, 3.5, 20, 3.0, {"test/bleu": "signature"}, "it learned too little")

    code, run = does(claimed, train)
    assert (code, run.state, run.progress_step) == (worker.DONE, RunState.COMPLETED, 20)
    assert (run.valid_score, run.valid_step, run.test_score) == (3.5, 20, 3.0)
    assert (run.error, run.undertrained) == (None, "it learned too little")
    assert reading.load_sweep(database).provenance[run.id].facts == {"vocabulary_size": 9}
    assert reading.curve(database, run.id, "train/learning_rate") == [(20, 1.5)]
    assert reading.outputs_of(database, [run.id], "test/translations").get(run.id, []) == ["a", "b"]


def test_a_short_run_is_recorded_in_one_transaction(does, claimed, database, tmp_path):
    """So a kill leaves all of it or nothing, and the disk is waited for once."""
    written = set()

    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        recorder.begin({"torch": "2"}, "data", "code", 0, None, {})
        recorder.metric("valid/bleu", 20, 1.5)
        recorder.flush_if_due(20)
        recorder.outputs("test/translations", ["a"])
        recorder.documents(DocumentSums("line", {"words": [1.0]}))
        written.add(database.location.read_bytes())
        return RunOutcome(None, 20, 3.5, 20, 3.0, {})

    before = database.location.read_bytes()
    code, run = does(claimed, train)
    assert (code, run.state) == (worker.DONE, RunState.COMPLETED)
    assert written == {before}
    assert reading.curve(database, run.id, "valid/bleu") == [(20, 1.5)]


def test_a_process_does_one_work_after_another_until_there_is_no_more(does, claimed, monkeypatch, channels, database):
    second = replace(claimed, run_id=claimed.run_id + 1, attempt=None)
    following = iter([second, None])
    done = []
    monkeypatch.setattr(worker, "_work", lambda work, channel, database: done.append(work) or worker.DONE)
    assert worker.work(claimed, channels[0], lambda: next(following)) == worker.DONE
    assert done == [claimed, second]


def test_a_process_that_failed_takes_no_more_work(claimed, monkeypatch, channels):
    monkeypatch.setattr(worker, "_work", lambda *_: worker.CRASHED)
    assert worker.work(claimed, channels[0], lambda: pytest.fail("asked for more")) == worker.CRASHED


@pytest.mark.parametrize("diverged", [None, "loss is nan"])
def test_what_a_run_goes_on_from_stays_until_its_outcome_is_recorded(
    does, claimed, database, tmp_path, monkeypatch, diverged
):
    names = [f"{kind}-000000020.{'ab' * 32}.ckpt" for kind in ("best", "step", "weights")]

    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        for name in names:
            (folder / name).touch()
        return RunOutcome(diverged, 20, 3.5, 20, 3.0, {})

    def full(*_, **__):
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "complete", full)
        patch.setattr(RunWriter, "diverge", full)
        code, run = does(claimed, train)
    assert (code, run.state) == (worker.STOPPED, RunState.INTERRUPTED)
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == names
    code, run = does(claim(database, tmp_path), train)
    assert (code, run.state) == (worker.DONE, RunState.DIVERGED if diverged else RunState.COMPLETED)
    assert [path.name for path in (tmp_path / "files").iterdir()] == names[:1]


def test_a_divergence_is_an_outcome(does, claimed):
    code, run = does(claimed, lambda *_, **__: RunOutcome("loss is nan", 7, None, None, None, {}))
    assert (code, run.state, run.error, run.progress_step) == (worker.DONE, RunState.DIVERGED, "loss is nan", 7)


def test_a_pruned_run_is_an_outcome_with_its_reason(does, claimed):
    outcome = RunOutcome(None, 7, 3.5, 5, None, {}, pruned="worse than the median", weights_sha256="ab" * 32)
    code, run = does(claimed, lambda *_, **__: outcome)
    assert (code, run.state, run.error, run.progress_step) == (worker.DONE, RunState.PRUNED, "worse than the median", 7)
    assert (run.valid_score, run.valid_step, run.test_score, run.weights_sha256) == (3.5, 5, None, "ab" * 32)


def test_a_stopped_run_is_interrupted_where_it_was(does, claimed):
    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        recorder.flush(12)
        raise Stopped

    code, run = does(claimed, train)
    assert (code, run.state, run.progress_step) == (worker.STOPPED, RunState.INTERRUPTED, 12)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no\nway"), "ValueError: no"),
        (KdxError("no batch", place="training", hint="x"), "training: no batch"),
        (MemoryError(), "out of memory: MemoryError"),
    ],
)
def test_a_crash_is_recorded_with_its_rows_its_cause_and_its_trace(does, claimed, database, capsys, error, expected):
    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        recorder.metric("train/loss", 1, 2.0)
        raise error

    code, run = does(claimed, train)
    assert (code, run.state) == (worker.CRASHED, RunState.FAILED) and run.error.endswith(expected)
    (attempt,) = reading.attempts(database, run.id)
    assert "in train" in attempt.traceback and type(error).__name__ in attempt.traceback
    assert attempt.traceback in capsys.readouterr().err  # which goes to the run's log
    assert reading.curve(database, run.id, "train/loss") == [(1, 2.0)]


@pytest.mark.parametrize("asks", [lambda: bytearray(2**60), lambda: torch.empty(2**58)], ids=["python", "torch"])
def test_a_run_that_is_refused_memory_fails_for_that_reason(does, claimed, figure, asks):
    code, run = does(claimed, lambda *_, **__: asks())
    assert (code, run.state) == (worker.CRASHED, RunState.FAILED)
    assert run.error.startswith("out of memory: ")
    figure(run.error)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left", "/runs/x.ckpt"), "/runs/x.ckpt: the disk is full: No space left\n"),
        (OSError(errno.EDQUOT, "Quota exceeded"), "{folder}: the disk is full: Quota exceeded\n"),
        (OSError(errno.EIO, "Input/output error"), "{folder}: the disk failed: Input/output error\n"),
        (OSError(errno.EROFS, "Read-only file system", "x"), "x: no permission: Read-only file system\n"),
        (OSError(errno.EACCES, "Permission denied", "x"), "x: no permission: Permission denied\n"),
        (StorageError("the disk is full", place="runs.db"), "runs.db: the disk is full"),
        (ChangedError("it changed", place="files", changes="torch 2.12 → 2.13"), "files: it changed"),
        (DatabaseError("locked", place="runs.db"), "runs.db: locked"),
    ],
)
def test_what_would_stop_any_run_interrupts_this_one_and_is_told(
    does, claimed, database, channels, capsys, error, expected
):
    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        recorder.flush(12)
        raise error

    code, run = does(claimed, train)
    assert (code, run.state, run.progress_step) == (worker.STOPPED, RunState.INTERRUPTED, 12)
    assert receive(channels[1]) == {"event": "begins", "run": run.id, "what": "preparing data"}
    message = receive(channels[1])
    assert (message["event"], message["run"]) == ("trouble", run.id)
    assert str(error_of(message)).startswith(expected.format(folder=claimed.folder))
    (attempt,) = reading.attempts(database, run.id)
    assert attempt.changes == ("torch 2.12 → 2.13" if isinstance(error, ChangedError) else None)


def test_a_log_that_cannot_be_written_changes_nothing_of_how_a_run_ends(does, claimed, database, figure):
    """It lies on the disk that is full, and so does what is still buffered for it."""

    def train(*_, **__):
        raise ValueError("no way")

    # Closing it would write what is still buffered.
    with contextlib.suppress(OSError), Path("/dev/full").open("w") as full, contextlib.redirect_stderr(full):
        code, run = does(claimed, train)
    assert (code, run.state) == (worker.CRASHED, RunState.FAILED) and run.error.endswith("ValueError: no way")
    assert "in train" in reading.attempts(database, run.id)[0].traceback
    figure(f"a log on a full disk: {run.state}: {run.error}, with its traceback")


def test_a_database_that_is_gone_is_told(claimed, channels):
    code = worker.work(replace(claimed, database=f"{claimed.database}.gone"), channels[0])
    assert code == worker.STOPPED
    assert isinstance(error_of(receive(channels[1])), DatabaseError)


def test_a_folder_that_cannot_be_made_is_a_failure_with_its_cause(does, claimed, tmp_path):
    (tmp_path / "files").touch()
    code, run = does(claimed, None)
    assert (code, run.state) == (worker.CRASHED, RunState.FAILED)
    assert "files" in run.error


def test_a_run_that_was_taken_away_is_left_alone(does, claimed, database):
    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        claims.abandon(database, claimed.run_id, "me", claimed.attempt, "gone")
        assert claims.claim(database, claimed.run_id, "other", 60.0) == claimed.attempt + 1
        recorder.metric("train/loss", 1, 2.0)
        recorder.flush(1)
        raise AssertionError("fenced")

    code, run = does(claimed, train)
    assert (code, run.state, run.owner) == (worker.TAKEN, RunState.RUNNING, "other")
    assert reading.curve(database, run.id, "train/loss") == []


def test_a_first_attempt_begins_from_nothing_and_a_second_goes_on(does, claimed, database, tmp_path):
    """Checkpoints that lie there before a run's first attempt are of a database that is gone."""
    old = tmp_path / "files" / "step-000000100.ckpt"
    old.parent.mkdir()
    old.touch()
    found = []

    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        found.append(sorted(path.name for path in folder.glob("*.ckpt")))
        (folder / "step-000000005.ckpt").touch()
        raise Stopped

    does(claimed, train)
    does(claim(database, tmp_path), train)
    assert found == [[], ["step-000000005.ckpt"]]


def test_an_order_that_comes_late_touches_no_file(does, claimed, database, tmp_path):
    """As of a sweep that was stopped between claim and claimed for longer than its lease."""
    claims.abandon(database, claimed.run_id, "me", claimed.attempt, "silent")
    assert claims.claim(database, claimed.run_id, "other", 60.0)
    theirs = tmp_path / "files" / "step-000000005.ckpt"
    theirs.parent.mkdir()
    theirs.touch()
    code, run = does(claimed, None)
    assert (code, run.state, run.owner) == (worker.TAKEN, RunState.RUNNING, "other")
    assert theirs.exists()


def test_training_is_told_how_far_the_rows_have_come(does, claimed, database, tmp_path):
    found = []

    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        found.append((recorded, checkpointed))
        recorder.flush(12)
        recorder.checkpointed(10)
        raise Stopped

    does(claimed, train)
    does(claim(database, tmp_path), train)
    assert found == [(0, None), (12, 10)]


@pytest.mark.parametrize(("link", "attempt"), [("files", 1), ("files", 2), ("files/log.txt", 2)])
def test_nothing_is_written_through_a_link_that_somebody_planted(
    claimed, database, channels, tmp_path, link, attempt, figure
):
    if attempt == 2:
        claims.abandon(database, claimed.run_id, "me", claimed.attempt, "killed")
        claimed = claim(database, tmp_path)
    elsewhere, planted = tmp_path / "elsewhere", tmp_path / link
    if link == "files":
        elsewhere.mkdir()
    else:
        planted.parent.mkdir()
    planted.symlink_to(elsewhere)
    assert worker.work(claimed, channels[0]) == worker.CRASHED
    state = reading.load_sweep(database).runs[0].state
    assert state is RunState.FAILED
    assert not elsewhere.exists() or not list(elsewhere.iterdir())
    written = [path for path in (elsewhere, *elsewhere.glob("*")) if path.is_file()]
    figure(f"{state}, {len(written)} files written elsewhere")


def test_a_log_that_is_a_pipe_is_not_waited_for(claimed, database, channels, tmp_path):
    claims.abandon(database, claimed.run_id, "me", claimed.attempt, "killed")
    claimed = claim(database, tmp_path)
    Path(claimed.folder).mkdir()
    os.mkfifo(Path(claimed.folder) / "log.txt")
    assert worker.work(claimed, channels[0]) == worker.CRASHED
    assert reading.load_sweep(database).runs[0].state is RunState.FAILED


def test_a_run_whose_rows_cannot_be_recorded_fails_for_that_reason(does, claimed):
    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        recorder.metric("train/loss", 1, "much")
        recorder.flush(1)

    code, run = does(claimed, train)
    assert (code, run.state) == (worker.CRASHED, RunState.FAILED)
    assert "TypeError: train/loss at step 1 is not one number" in run.error


def test_a_stopped_run_that_was_taken_away_is_left_alone(does, claimed, database):
    def train(spec, seed, *, folder, recorder, stop, options, recorded, checkpointed, tests, shorter):
        claims.abandon(database, claimed.run_id, "me", claimed.attempt, "silent")
        raise Stopped

    code, run = does(claimed, train)
    assert (code, run.state) == (worker.TAKEN, RunState.INTERRUPTED)


def test_a_database_that_is_locked_when_a_worker_opens_it_is_waited_for(does, claimed, database, monkeypatch):
    monkeypatch.setattr("kdx.store.database.BUSY_SECONDS", 0.1)
    monkeypatch.setattr("kdx.store.sqlite.database.SLICE", 0.1)
    locked, done = threading.Event(), threading.Event()

    def lock() -> None:
        with open_database(database.location, write=True) as other, other.write():
            locked.set()
            done.wait(1.0)

    thread = threading.Thread(target=lock)
    thread.start()
    locked.wait()
    code, run = does(claimed, lambda *_, **__: RunOutcome("loss is nan", 7, None, None, None, {}))
    thread.join()
    assert (code, run.state) == (worker.DONE, RunState.DIVERGED)


def test_what_libraries_print_goes_to_the_log(tmp_path):
    log = tmp_path / "log.txt"
    pid = os.fork()
    if pid == 0:
        worker._log_to(log)
        os.write(1, b"out\n")
        os.write(2, b"err\n")
        os._exit(0)
    os.waitpid(pid, 0)
    assert log.read_text() == "out\nerr\n"
