"""What a sweep tells its server and hears from it: one JSON object a packet.

To the server: a run to start, or a signal for one worker or all. From the workers: `progress`, `alive` where a step
takes long, `note`, what whoever watches is to know, and `trouble`, what made a run stop that is no fault of its own.
From the server: `exit` of a worker.
"""

import json
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kdx.axes import IfChanged
from kdx.errors import ChangedError, DatabaseError, KdxError, StorageError

LARGEST_PACKET = 1 << 20  # bytes


@dataclass(frozen=True)
class Order:
    """A claimed run, with all that a worker process needs to do it."""

    run_id: int
    attempt: int
    owner: str
    database: str
    """Path or address of the results database."""
    spec: str
    """The cell's canonical JSON."""
    seed: int
    folder: str
    """Where the run's checkpoints and log are."""
    if_changed: str = IfChanged.REFUSE
    """Where it has checkpoints that were made under other conditions."""
    card: str | None = None
    """The one GPU that the worker is to see, as `CUDA_VISIBLE_DEVICES` names it; None: whatever there is."""


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """One packet; waits while the other side is behind."""
    channel.send(json.dumps(message).encode())


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """The next packet; None when the other side has ended."""
    try:
        packet = channel.recv(LARGEST_PACKET)
    except ConnectionResetError:
        # It ended with packets of ours unread, which is told once; what it sent before is still to come.
        packet = channel.recv(LARGEST_PACKET)
    return json.loads(packet) if packet else None


def start(order: Order) -> dict[str, Any]:
    """The packet that starts a run."""
    return {"do": "start", "order": asdict(order)}


def trouble(run_id: int, error: KdxError) -> dict[str, Any]:
    """The packet that tells why a run cannot go on, though it could elsewhere or later."""
    place = None if error.place is None else str(error.place)
    fields = {"problem": error.problem, "place": place, "allowed": error.allowed, "hint": error.hint}
    return {"event": "trouble", "run": run_id, "code": error.exit_code, "error": fields}


def told(message: Mapping[str, Any]) -> KdxError:
    """The error of a `trouble`."""
    kinds = {kind.exit_code: kind for kind in (KdxError, DatabaseError, StorageError, ChangedError)}
    fields = dict(message["error"])
    return kinds[message["code"]](fields.pop("problem"), **fields)
