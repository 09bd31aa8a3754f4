"""The messages between a sweep and the processes of its runs: one JSON object in each packet.

The sweep sends to the host's process: a run to start, or a signal for one worker or all. Workers send: `progress`,
`alive` during a long step, `note`, a text for the user, and `trouble`, a fault outside the run that made it stop. The
host's process sends: `exit` of a worker.

A packet holds no more than a socket's buffer (212,992 bytes by Linux's default), and a cell may be larger. A large
message lies in an anonymous file in memory, and its packet carries the file's descriptor.
"""

import array
import json
import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from kdx.errors import AccessError, ChangedError, DatabaseError, KdxError, ServerError, StorageError
from kdx.run_options import RunOptions

LARGEST_PACKET = 1 << 15  # bytes
DONE, CRASHED, STOPPED, TAKEN = 0, 1, 75, 76  # exit codes of a worker
_IN_FILE = b"file"
_KINDS = (AccessError, ChangedError, DatabaseError, ServerError, StorageError, KdxError)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ClaimedRun:
    """A claimed run with everything that a worker process needs.

    Raises:
        pydantic.ValidationError: the values are not of these types, as in a message of another kdx.
    """

    run_id: int
    attempt: int
    lease_holder: str
    """The process that claimed the run, see `kdx.sweep.lease_holder`."""
    database: str
    """Path or address of the results database."""
    spec: str
    """The cell's canonical JSON."""
    seed: int
    folder: str
    """The folder of the run's checkpoints and log."""
    options: RunOptions = RunOptions()
    gpu: str | None = None
    """The only GPU that the worker may see, as `CUDA_VISIBLE_DEVICES` names it; None for all GPUs."""


def send(channel: socket.socket, message: Mapping[str, Any], flags: int = 0) -> None:
    """Sends one object; waits up to the timeout of the channel while the other side does not read.

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


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """The next object; None when the other side has ended."""
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


def start(claimed: ClaimedRun) -> dict[str, Any]:
    """The message that starts a run."""
    return {"do": "start", "claimed": asdict(claimed)}


def claimed_run(message: Mapping[str, Any]) -> ClaimedRun:
    """The run of a `start`.

    Raises:
        pydantic.ValidationError: this kdx sends no such message.
    """
    return ClaimedRun(**message["claimed"])


def forward(signum: int, run_id: int | None) -> dict[str, Any]:
    """The message that sends a signal to the worker of a run, or to all."""
    return {"do": "signal", "signal": signum, "run": run_id}


def trouble(run_id: int, error: KdxError) -> dict[str, Any]:
    """The message with the error that keeps a run from continuing, though it could elsewhere or later."""
    place = None if error.place is None else str(error.place)
    kind = next(kind for kind in _KINDS if isinstance(error, kind)).__name__
    fields = {"problem": error.problem, "place": place, "allowed": error.allowed, "hint": error.hint}
    return {"event": "trouble", "run": run_id, "kind": kind, "error": fields}


def error_of(message: Mapping[str, Any]) -> KdxError:
    """The error of a `trouble`."""
    kinds = {kind.__name__: kind for kind in _KINDS}
    fields = dict(message["error"])
    return kinds[message["kind"]](fields.pop("problem"), **fields)


def describe_exit(code: int) -> str:
    """How a process ended, from its exit code, which is negative for a signal as in subprocess."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # most real-time signals have no name
        return f"killed by signal {-code}"
