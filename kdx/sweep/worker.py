"""Does the work of one process: a claimed run up to its final state in the database, and its evaluations."""

import contextlib
import faulthandler
import json
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

import torch

from kdx.components.registry import take
from kdx.errors import AccessError, ChangedError, DatabaseError, KdxError, StorageError, of_the_machine
from kdx.files import fsync_directory
from kdx.grid.spec import CellSpec
from kdx.store import reading
from kdx.store.claims import Fenced
from kdx.store.database import Database, open_database
from kdx.store.recording import ComeTo, RunWriter
from kdx.sweep.evaluating import make_evaluations
from kdx.sweep.messages import (
    CRASHED,
    DONE,
    STOPPED,
    TAKEN,
    SignsOfLife,
    Work,
    describe_error,
    lacks_memory,
    send,
    trouble,
)
from kdx.sweep.pace import Pace
from kdx.sweep.run_log import RunLog
from kdx.training.environment import peak_memory
from kdx.training.recorder import Recorder
from kdx.training.resume import delete_resume_checkpoints
from kdx.training.run import train
from kdx.training.stopping import Stopped, StopRequest
from kdx.training.sums import DocumentSums

if TYPE_CHECKING:
    from kdx.tune.pruning import Judge

FLUSH_EVERY = 1.0
"""Seconds between two writes of numbers, at least; see `kdx.sweep.pace.Pace`."""
FLUSH_AT_LATEST = 30.0
"""Seconds between two writes of numbers, at most."""

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
                used_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
                following = None if used_gpu else another()
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
    # They were blocked since before the fork, so that an early signal waited for its handler.
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
    folder = Path(claimed.folder)
    writer = RunWriter(database, claimed.run_id, claimed.lease_holder, attempt, peak_memory)
    recorder = DatabaseRecorder(writer, claimed.run_id, channel)
    try:
        come_to = database.persist(lambda: _take_folder(writer, folder, attempt))
        _log_to(folder / "log.txt")
        spec = CellSpec.model_validate(json.loads(claimed.spec))
        if claimed.rivals is not None:
            # late: Optuna takes 0.1 s to import, and few runs are trials
            from kdx.tune.pruning import Judge

            curve = dict(reading.curve(database, claimed.run_id, spec.selection[0]))
            recorder.judge = Judge(claimed.rivals, curve), spec.selection[0].removeprefix("valid/")
        recorder.log = RunLog(spec.training.steps, spec.selection[0].removeprefix("valid/"), peak_memory)
        outcome = train(
            spec,
            claimed.seed,
            folder=folder,
            recorder=recorder,
            stop=stop,
            options=claimed.options,
            recorded=come_to.rows,
            checkpointed=come_to.checkpoint,
            tests=claimed.tests,
        )
        scores: dict[str, Any] = {
            "valid_score": outcome.valid_score,
            "valid_step": outcome.valid_step,
            "definitions": outcome.definitions,
            "last_step": outcome.step,
            "weights_sha256": outcome.weights_sha256,
        }
        if outcome.pruned is not None:
            end = partial(writer.prune, outcome.pruned, **scores)
        elif outcome.diverged:
            end = partial(writer.diverge, outcome.diverged, test_score=outcome.test_score, **scores)
        else:
            end = partial(writer.complete, test_score=outcome.test_score, undertrained=outcome.undertrained, **scores)
        recorder.write(outcome.step, end)
        # Not earlier, since another attempt could resume only from these. kdx gc removes what stays.
        with contextlib.suppress(OSError):
            delete_resume_checkpoints(folder)
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
        trace = traceback.format_exc()
        if claimed.beside and lacks_memory(error):
            why = f"{describe_error(error)} (beside other runs on GPU {claimed.gpu})"
            recorder.note(f"is {why}; it is tried once more alone")
            recorder.write(recorder.step, partial(writer.interrupt, recorder.step, error=why, traceback=trace))
            return STOPPED
        with contextlib.suppress(OSError):  # the database has it too
            print(trace, file=sys.stderr, flush=True)
        # The run may have ended because a row cannot be recorded; then it still cannot.
        with contextlib.suppress(TypeError, KdxError):
            recorder.flush(recorder.step)
        writer.fail(describe_error(error), trace, recorder.step)
        return CRASHED


def _take_folder(writer: RunWriter, folder: Path, attempt: int) -> ComeTo:
    """Make the folder of a run, and return the progress of the run."""
    # The message may come late, when another attempt already has the run and its files.
    with writer.holding() as come_to:
        if folder.is_symlink():
            raise KdxError(
                "the folder of the run is a symbolic link; kdx writes through none",
                place=str(folder),
                hint="remove the link, then kdx resume --failed",
            )
        if attempt == 1 and folder.exists():
            # Left by a run of a lost database; resuming from it would give curves without a beginning.
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for above in (folder.parent, folder.parent.parent):
            fsync_directory(above)
    return come_to


class DatabaseRecorder(Recorder):
    """A recorder that writes to the database now and then, and sends progress to the sweep at once.

    It writes every second, and more rarely where writing takes long: all that came since then in one transaction. So a
    short run has one, at its end.
    """

    def __init__(
        self, writer: RunWriter, run_id: int, channel: socket.socket, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.writer = writer
        self.log: RunLog | None = None
        """Writes lines on the progress to the run's log; None before there is that log."""
        self.judge: tuple[Judge, str] | None = None
        """Judge of a trial that may end early, and the metric that it judges by."""
        self._signs = SignsOfLife(channel, run_id, clock)
        self.step = 0
        self._validated = False
        """Whether a validation was done since the last rows were written."""
        self._rows: list[tuple[str, int, float]] = []
        self._writes: list[Callable[[], None]] = []
        """What else came since the last transaction, as calls of the writer."""
        self._pace = Pace(FLUSH_EVERY, FLUSH_AT_LATEST, clock)

    def begin(
        self,
        environment: Mapping[str, Any],
        data_fingerprint: str,
        code_fingerprint: str,
        resumed_step: int,
        changes: str | None,
        data_facts: Mapping[str, Any],
    ) -> None:
        self._writes.append(
            partial(
                self.writer.begin,
                environment,
                data_fingerprint,
                code_fingerprint,
                resumed_step,
                changes,
                data_facts,
            )
        )

    def note(self, text: str) -> None:
        self._signs.note(text)

    def metric(self, name: str, step: int, value: float) -> None:
        self._rows.append((name, step, value))
        self._validated |= name.startswith("valid/")
        if self.log:
            self.log.measured(name, value)

    def progress(self, step: int, loss: float, gradient_norm: SupportsFloat | None = None) -> None:
        self.step = step
        self.flush_if_due(step)
        self._signs.say({"event": "progress", "step": step, "loss": loss})
        if self.log:
            self.log.progress(step, loss, gradient_norm)

    def alive(self) -> None:
        self._signs.alive()

    def checkpointed(self, step: int) -> None:
        self.writer.checkpoint(step)

    def flush_if_due(self, step: int) -> None:
        if self._pace.due:
            self.flush(step)

    def flush(self, step: int) -> None:
        self.write(step)

    def write(self, step: int, *more: Callable[[], None]) -> None:
        """Write what came since the last transaction, and more, as calls of the writer."""
        self.step = max(self.step, step)
        with self._pace.keep():
            self.writer.together([*self._writes, partial(self.writer.record, self._rows, self.step), *more])
        self._writes.clear()
        self._rows.clear()
        if self._validated:
            self._validated = False
            self._signs.measured(peak_memory())
        if self.log:
            self.log.recorded(step)

    def why_pruned(self, step: int, metrics: Mapping[str, float]) -> str | None:
        if self.judge is None:
            return None
        judge, metric = self.judge
        return judge.why_pruned(step, metrics[metric])

    def documents(self, sums: DocumentSums) -> None:
        self._writes.append(partial(self.writer.documents, sums.unit, sums.sums))

    def outputs(self, name: str, lines: Sequence[str]) -> None:
        self._writes.append(partial(self.writer.outputs, name, lines))


def _log_to(path: Path) -> None:
    """Send what libraries print to the run's log instead of the sweep's terminal."""
    # Do not write through a link, or wait for a reader of a pipe.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
