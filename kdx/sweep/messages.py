"""The messages between a sweep and the processes of its runs: one JSON object in each packet.

The sweep sends to the host's process: work to `start`, or a `signal` for one worker or all. Workers send: `begins` with
what they do before the first step, `progress`, `alive` during a long step, `note`, a text for the user, and `trouble`,
a fault outside the run that made it stop. The host's process sends: `exit` of a worker.

A packet holds no more than a socket's buffer (212,992 bytes by Linux's default), and a cell may be larger. A large
message is in an anonymous file in memory, and its packet carries the file's descriptor.
"""

import array
import contextlib
import json
import os
import re
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from kdx.errors import AccessError, ChangedError, DatabaseError, KdxError, ServerError, StorageError
from kdx.run_options import RunOptions

LARGEST_PACKET = 1 << 15  # bytes
PROGRESS_EVERY = 0.2  # seconds
DONE, CRASHED, STOPPED, TAKEN = 0, 1, 75, 76  # exit codes of a worker
_IN_FILE = b"file"
_INSTALLED = re.compile(
    rf"<|{re.escape(str(Path(__file__).parents[1]))}/|{re.escape(str(Path(os.__file__).parent))}/|.*/(site|dist)-packages/"
)
"""Files of kdx, of Python and of packages: any other file in a traceback is the user's own."""
_KINDS = (AccessError, ChangedError, DatabaseError, ServerError, StorageError, KdxError)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Work:
    """The work of one worker process: a claimed run, or the evaluations of a completed one, with all that it needs."""

    run_id: int
    attempt: int | None
    """The number of the claimed attempt; None: the run is completed, and stays as it is."""
    lease_holder: str
    """The process that claims runs, see `kdx.sweep.lease_holder`."""
    database: str
    """Path or address of the results database."""
    spec: str
    """Every field of the cell, JSON (`CellSpec.text`)."""
    seed: int
    folder: str
    """The folder of the run's checkpoints and log."""
    options: RunOptions = RunOptions()
    gpu: str | None = None
    """The one GPU that the worker sees, as `CUDA_VISIBLE_DEVICES` names it; None: whatever there is."""
    beside: bool = False
    """Whether other runs may be on that GPU, so that it may lack memory which it would have alone."""
    evaluations: tuple[str, ...] = ()
    """Evaluations to make once the run is completed, each as the JSON of its settings, see `kdx.grid.evaluations`."""
    components: tuple[str, ...] = ()
    """The custom components that the cell has, each as text, see `kdx.components.registry`."""
    shorter: tuple[int, str] | None = None
    """Id and folder of a run of this cell with fewer steps, which it continues if it has no checkpoint yet."""
    tests: bool = True
    """Whether the run ends with its test; that of a trial does not."""
    rivals: str | None = None
    """What a search judges it against, see `kdx.tune.known_trial.Rivals`; None: it runs to its end."""


def send(channel: socket.socket, message: Mapping[str, Any], flags: int = 0) -> None:
    """Send one object; wait up to the timeout of the channel while the other side does not read.

    Raises:
        OSError: the other side has ended, or did not read in time.
    """
    packet = json.dumps(message).encode()
    if len(packet) <= LARGEST_PACKET:
        channel.send(packet, flags)
        return
    with os.fdopen(os.memfd_create("kdx"), "w+b") as file:
        file.write(packet)
        file.flush()
        # The same as socket.send_fds, which ignores its flags.
        channel.sendmsg([_IN_FILE], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))], flags)


class SignsOfLife:
    """Sends what a worker reports to its sweep, most of it now and then, so that a busy sweep delays no worker."""

    def __init__(self, channel: socket.socket, run_id: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._channel, self._run_id, self._clock = channel, run_id, clock
        self._said = clock()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send an event of the run, unless another was sent a moment ago; it is dropped if the sweep is behind."""
        now = self._clock()
        if now - self._said >= PROGRESS_EVERY:
            self._said = now
            # One that is gone is noticed by the host.
            with contextlib.suppress(OSError):
                send(self._channel, {**message, "run": self._run_id}, socket.MSG_DONTWAIT)

    def alive(self) -> None:
        """Report that the process is there and at work."""
        self.say({"event": "alive"})

    def begins(self, what: str) -> None:
        """Report what the run begins with before its first step, such as `preparing data`."""
        with contextlib.suppress(OSError):
            send(self._channel, {"event": "begins", "run": self._run_id, "what": what}, socket.MSG_DONTWAIT)

    def note(self, text: str) -> None:
        """Report one line, a clause whose subject is the run, to the user and the run's log."""
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):
            send(self._channel, {"event": "note", "run": self._run_id, "text": text})


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """Return the next object; None once the other side has ended."""
    try:
        packet, descriptors, _, _ = socket.recv_fds(channel, LARGEST_PACKET, 1)
    except ConnectionResetError:
        # The other side ended with unread packets, which is reported once; its last messages are still to come.
        packet, descriptors, _, _ = socket.recv_fds(channel, LARGEST_PACKET, 1)
    if packet == _IN_FILE:
        with os.fdopen(descriptors[0], "rb") as file:
            file.seek(0)  # both sides share one position
            packet = file.read()
    return json.loads(packet) if packet else None


def start(work: Work) -> dict[str, Any]:
    """Return the message that starts a process; `Work(**message["work"])` is its work again."""
    return {"do": "start", "work": asdict(work)}


def trouble(run_id: int, error: KdxError) -> dict[str, Any]:
    """Return the message with an error that stops a run here and now, though it could continue elsewhere or later."""
    place = None if error.place is None else str(error.place)
    kind = next(kind for kind in _KINDS if isinstance(error, kind)).__name__
    fields = {"problem": error.problem, "place": place, "allowed": error.allowed, "hint": error.hint}
    return {"event": "trouble", "run": run_id, "kind": kind, "error": fields}


def error_of(message: Mapping[str, Any]) -> KdxError:
    """Return the error of a `trouble`."""
    kinds = {kind.__name__: kind for kind in _KINDS}
    fields = dict(message["error"])
    return kinds[message["kind"]](fields.pop("problem"), **fields)


def describe_exit(code: int) -> str:
    """Return how a process ended, from its exit code, which is negative for a signal as in subprocess."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # most real-time signals have no name
        return f"killed by signal {-code}"


def describe_error(error: Exception) -> str:
    """Return an exception in one line, after the line of the user's code that raised it, if any did."""
    if isinstance(error, KdxError):
        return str(error).partition("\n")[0]
    line = traceback.format_exception_only(error)[0].partition("\n")[0]
    if lacks_memory(error):
        return f"out of memory: {line}"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not _INSTALLED.match(frame.filename)]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno} in {own[-1].name}: {line}" if own else line


def lacks_memory(error: BaseException) -> bool:
    """Return whether an exception says that there was no more memory, of a GPU or of the machine."""
    # torch has an exception class for the memory of a GPU alone, but texts for both; its libraries have others.
    line = str(error).partition("\n")[0]
    texts = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
    return isinstance(error, MemoryError) or any(text in line for text in texts)
