"""Does the work of one process: a claimed run up to its final state in the database, and its evaluations."""

import contextlib
import faulthandler
import os
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kdx.components.registry import take
from kdx.errors import AccessError, ChangedError, DatabaseError, KdxError, StorageError, of_the_machine
from kdx.files import fsync_directory
from kdx.grid.spec import CellSpec, read_plain
from kdx.store import reading
from kdx.store.claims import Fenced
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.sweep.evaluating import make_evaluations
from kdx.sweep.messages import (
    CRASHED,
    DONE,
    STOPPED,
    TAKEN,
    Work,
    describe_error,
    lacks_memory,
    send,
    trouble,
)
from kdx.sweep.recorder import DatabaseRecorder, RunLog
from kdx.training.environment import peak_memory, uses_gpu
from kdx.training.longer import Shorter
from kdx.training.resume import delete_resume_checkpoints
from kdx.training.run import RunOutcome, train
from kdx.training.stopping import Stopped, StopRequest

# Errors that would stop any run here and now, so that the run is not recorded as failed.
_OF_THE_MACHINE = (AccessError, ChangedError, DatabaseError, StorageError)


def work(work: Work, channel: socket.socket, another: Callable[[], Work | None] = lambda: None) -> int:
    """Train the run and record how it ended, make its evaluations if it is completed, and return the exit code.

    Args:
        channel: where the sweep listens.
        another: called when a work is done; returns the next one, or None if this process is to end. It is called, and
            returns, with the signals blocked that a worker handles.
    """
    faulthandler.register(signal.SIGUSR1, file=2)
    try:
        with open_database(work.database, write=True, patient=True) as database:
            following: Work | None = work
            while following is not None:
                work = following
                code = _work(work, channel, database)
                if code != DONE:
                    return code
                following = None if uses_gpu() else another()
            return DONE
    except Stopped:
        return STOPPED
    except Fenced:
        return TAKEN
    except _OF_THE_MACHINE as error:
        with contextlib.suppress(OSError):  # the sweep is gone
            send(channel, trouble(work.run_id, error))
        return STOPPED


def _work(work: Work, channel: socket.socket, database: Database) -> int:
    stop = StopRequest()
    stop.listen()
    # They were blocked since before the fork, or since the last work, so that an early signal waited for its handler.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    take(work.components)
    code = DONE
    if work.attempt is not None:
        code = _attempt(work, work.attempt, channel, database, stop)
    else:
        with contextlib.suppress(OSError):  # the folder went with the weights
            _log_to(Path(work.folder) / "log.txt")
    if code == DONE and work.evaluations:
        make_evaluations(work, channel, database, stop)
    return code


def _attempt(claimed: Work, attempt: int, channel: socket.socket, database: Database, stop: StopRequest) -> int:
    """Train a claimed run, record how the attempt ended, and return the exit code.

    Raises:
        AccessError, ChangedError, DatabaseError, StorageError: the fault is not in the run, which is interrupted.
        Fenced: another process has the run; nothing more is recorded.
    """
    writer = RunWriter(database, claimed.run_id, claimed.lease_holder, attempt, peak_memory)
    recorder = DatabaseRecorder(writer, claimed.run_id, channel)
    recorder.begins("preparing data")
    try:
        outcome = _trained(claimed, attempt, recorder, database, stop)
        recorder.write(outcome.step, partial(_end, writer, outcome))
        # Not earlier, since another attempt could resume only from these. kdx gc removes what stays.
        with contextlib.suppress(OSError):
            delete_resume_checkpoints(Path(claimed.folder))
        return DONE
    except Stopped:
        recorder.write(recorder.step, partial(writer.interrupt, recorder.step))
        return STOPPED
    except Fenced:
        raise
    except Exception as error:
        translated = of_the_machine(error, claimed.folder) if isinstance(error, OSError) else error
        if isinstance(translated, _OF_THE_MACHINE):
            # If not even this can be written, the sweep records it later.
            with contextlib.suppress(Fenced, KdxError):
                refused = translated.changes if isinstance(translated, ChangedError) else None
                writer.interrupt(recorder.step, refused=refused)
            raise translated from error
        return _failed(claimed, recorder, error)


def _trained(
    claimed: Work, attempt: int, recorder: DatabaseRecorder, database: Database, stop: StopRequest
) -> RunOutcome:
    """Train a run until it ends; its last rows are recorded with its final state."""
    folder = Path(claimed.folder)
    recorded, checkpointed = database.persist(lambda: _take_folder(recorder.writer, folder, attempt))
    _log_to(folder / "log.txt")
    spec = CellSpec.model_validate(read_plain(claimed.spec))
    selection, _ = spec.selection
    if claimed.rivals is not None:
        # late: Optuna takes 0.1 s to import, and few runs are trials
        from kdx.tune.pruning import Judge

        curve = dict(reading.curve(database, claimed.run_id, selection))
        recorder.judge = Judge(claimed.rivals, curve), selection.removeprefix("valid/")
    recorder.log = RunLog(spec.training.steps, selection.removeprefix("valid/"), peak_memory)
    return train(
        spec,
        claimed.seed,
        folder=folder,
        recorder=recorder,
        stop=stop,
        options=claimed.options,
        recorded=recorded,
        checkpointed=checkpointed,
        tests=claimed.tests,
        shorter=claimed.shorter and Shorter(claimed.shorter[0], Path(claimed.shorter[1])),
    )


def _end(writer: RunWriter, outcome: RunOutcome) -> None:
    """Record the final state of a run."""
    scores: dict[str, Any] = {
        "valid_score": outcome.valid_score,
        "valid_step": outcome.valid_step,
        "definitions": outcome.definitions,
        "last_step": outcome.step,
        "weights_sha256": outcome.weights_sha256,
    }
    if outcome.pruned is not None:
        writer.prune(outcome.pruned, **scores)
    elif outcome.diverged:
        writer.diverge(outcome.diverged, test_score=outcome.test_score, **scores)
    else:
        writer.complete(test_score=outcome.test_score, undertrained=outcome.undertrained, **scores)


def _failed(claimed: Work, recorder: DatabaseRecorder, error: Exception) -> int:
    """Record an exception of a run, which has failed or is tried once more alone, and return the exit code."""
    trace = traceback.format_exc()
    if claimed.beside and lacks_memory(error):
        why = f"{describe_error(error)} (beside other runs on GPU {claimed.gpu})"
        recorder.note(f"is {why}; it is tried once more alone")
        interrupt = partial(recorder.writer.interrupt, recorder.step, error=why, traceback=trace)
        recorder.write(recorder.step, interrupt)
        return STOPPED
    with contextlib.suppress(OSError):  # the database has it too
        print(trace, file=sys.stderr, flush=True)
    # The run may have ended because a row cannot be recorded; then it still cannot.
    with contextlib.suppress(TypeError, KdxError):
        recorder.flush(recorder.step)
    recorder.writer.fail(describe_error(error), trace, recorder.step)
    return CRASHED


def _take_folder(writer: RunWriter, folder: Path, attempt: int) -> tuple[int, int | None]:
    """Make the folder of a run, and return the steps of its rows and of its newest checkpoint."""
    # The message may come late, when another attempt already has the run and its files.
    with writer.holding() as steps:
        if folder.is_symlink():
            raise KdxError(
                "the folder of the run is a symbolic link; kdx writes through none",
                place=str(folder),
                hint="remove the link, then kdx retry RUN",
            )
        if attempt == 1 and folder.exists():
            # Left by a run of a lost database; resuming from it would give curves without a beginning.
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        fsync_directory(folder.parent)
    return steps


def _log_to(path: Path) -> None:
    """Send what libraries print to the run's log instead of the sweep's terminal."""
    # Do not write through a link, or wait for a reader of a pipe.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
