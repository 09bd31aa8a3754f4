"""What a sweep tells its server and hears from it: one JSON object a packet.

To the server: a run to start, or a signal for every worker. From the workers: `progress`. From the server: `exit` of
a worker.
"""

import json
import socket
from dataclasses import asdict, dataclass
from typing import Any

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
