"""One claimed run, in a process of its own: from the order to the run's final state in the database."""

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kdx.axes import IfChanged
from kdx.errors import AccessError, ChangedError, DatabaseError, KdxError, StorageError, of_the_machine
from kdx.grid.spec import CellSpec
from kdx.store.database import Database, open_database
from kdx.store.leases import Fenced
from kdx.store.recording import RunWriter
from kdx.sweep.orders import CRASHED, DONE, STOPPED, TAKEN, Order, send, trouble
from kdx.training.checkpoint import force_names
from kdx.training.run import let_go, train
from kdx.training.stopping import Stopped, StopRequest

FLUSH_EVERY = 1.0  # seconds
PROGRESS_EVERY = 0.2  # seconds

# What would stop any run here and now, so that the one it met is not recorded as failed.
_OF_THE_MACHINE = (AccessError, ChangedError, DatabaseError, StorageError)


def work(order: Order, channel: socket.socket) -> int:
    """Do the run and record how it ended; the exit code of the process."""
    stop = StopRequest()
    stop.listen()
    faulthandler.register(signal.SIGUSR1, file=2)
    # Blocked since before the fork, so that a signal that came early waited for its handler.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        with open_database(order.database, write=True, patient=True) as database:
            return _attempt(order, channel, database, stop)
    except Fenced:
        return TAKEN
    except _OF_THE_MACHINE as error:
        with contextlib.suppress(OSError):  # the sweep is gone
            send(channel, trouble(order.run_id, error))
        return STOPPED


def _attempt(order: Order, channel: socket.socket, database: Database, stop: StopRequest) -> int:
    folder = Path(order.folder)
    writer = RunWriter(database, order.run_id, order.owner, order.attempt)
    recorder = DatabaseRecorder(writer, order.run_id, channel)
    try:
        # An order may come late, when another attempt already has the run, and its files.
        with writer.holding() as come_to:
            if folder.is_symlink():
                raise KdxError(
                    "the folder of the run is a symbolic link; kdx writes through none",
                    place=str(folder),
                    hint="remove the link, then kdx resume --failed",
                )
            if order.attempt == 1 and folder.exists():
                # Left by a run of a database that is gone; going on from it would give curves without a beginning.
                shutil.rmtree(folder)
            folder.mkdir(parents=True, exist_ok=True)
            for above in (folder.parent, folder.parent.parent):
                force_names(above)
        _log_to(folder / "log.txt")
        spec = CellSpec.model_validate(json.loads(order.spec))
        outcome = train(
            spec,
            order.seed,
            folder=folder,
            recorder=recorder,
            stop=stop,
            if_changed=IfChanged(order.if_changed),
            recorded=come_to.rows,
            checkpointed=come_to.checkpoint,
        )
        scores: dict[str, Any] = {
            "valid_score": outcome.valid_score,
            "valid_step": outcome.valid_step,
            "test_score": outcome.test_score,
            "definitions": outcome.definitions,
            "last_step": outcome.step,
            "weights_sha256": outcome.weights_sha256,
        }
        recorder.flush(outcome.step)
        if outcome.diverged:
            writer.diverge(outcome.diverged, **scores)
        else:
            writer.complete(**scores, undertrained=outcome.undertrained)
        # Not before: until then this is all that another attempt could go on from. What stays, kdx gc removes.
        with contextlib.suppress(OSError):
            let_go(folder)
        return DONE
    except Stopped:
        writer.interrupt(recorder.step)
        return STOPPED
    except Fenced:
        raise
    except Exception as error:
        told = of_the_machine(error, order.folder) if isinstance(error, OSError) else error
        if isinstance(told, _OF_THE_MACHINE):
            # Where not even this can be written, the sweep does it once it can.
            with contextlib.suppress(Fenced, KdxError):
                writer.interrupt(recorder.step)
            raise told from error
        trace = traceback.format_exc()
        with contextlib.suppress(OSError):  # the database has it too
            print(trace, file=sys.stderr, flush=True)
        # It may be a row that cannot be recorded which ended the run; then it still cannot.
        with contextlib.suppress(TypeError, KdxError):
            recorder.flush(recorder.step)
        writer.fail(_told(error), trace, recorder.step)
        return CRASHED


def _told(error: Exception) -> str:
    """In one line."""
    told = str(error) if isinstance(error, KdxError) else traceback.format_exception_only(error)[0]
    line = told.partition("\n")[0]
    # torch has a class of its own for the memory of a card alone, but words for both.
    refused = isinstance(error, MemoryError) or "can't allocate memory" in line or "out of memory" in line
    return f"out of memory: {line}" if refused else line


class DatabaseRecorder:
    """Keeps rows in memory for a second at most, then in the database; progress goes to the sweep as it comes."""

    def __init__(self, writer: RunWriter, run_id: int, channel: socket.socket) -> None:
        self.writer = writer
        self.run_id = run_id
        self.channel = channel
        self.step = 0
        self._rows: list[tuple[str, int, float]] = []
        self._flushed = self._told = time.monotonic()

    def begin(
        self,
        environment: Mapping[str, Any],
        data_fingerprint: str,
        code_fingerprint: str,
        resumed_step: int,
        changes: str | None,
        data_facts: Mapping[str, Any],
    ) -> None:
        self.writer.begin(environment, data_fingerprint, code_fingerprint, resumed_step, changes, data_facts)

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)  # to the run's log
        with contextlib.suppress(OSError):
            send(self.channel, {"event": "note", "run": self.run_id, "text": text})

    def metric(self, name: str, step: int, value: float) -> None:
        self._rows.append((name, step, value))

    def progress(self, step: int, loss: float) -> None:
        self.step = step
        if time.monotonic() - self._flushed >= FLUSH_EVERY:
            self.flush(step)
        self._tell({"event": "progress", "run": self.run_id, "step": step, "loss": loss})

    def alive(self) -> None:
        self._tell({"event": "alive", "run": self.run_id})

    def _tell(self, message: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if now - self._told >= PROGRESS_EVERY:
            self._told = now
            # A sweep that is behind must not hold up training, and one that is gone is noticed by the server.
            with contextlib.suppress(OSError):
                send(self.channel, message, socket.MSG_DONTWAIT)

    def checkpointed(self, step: int) -> None:
        self.writer.checkpoint(step)

    def flush(self, step: int) -> None:
        self.step = max(self.step, step)
        self.writer.record(self._rows, self.step)
        self._rows.clear()
        self._flushed = time.monotonic()

    def outputs(self, name: str, lines: Sequence[str]) -> None:
        self.writer.outputs(name, lines)


def _log_to(path: Path) -> None:
    """What libraries print belongs to the run, not to the sweep's terminal."""
    # Neither through a link nor waiting for somebody to read a pipe.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
