"""Holds leases on runs under a unique name, and finds out whether the process of another name still lives.

Process ids are reused, so the name also has the machine, its boot and the start time. Nothing can be proved about a
process on another machine, or one whose data cannot be read; then only the lease counts.

The start time is read from /proc in ticks since boot, which never change. psutil would convert it to seconds since
1970, which change with the clock.
"""

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from kdx.store import claims
from kdx.store.database import Database
from kdx.store.machine import machine
from kdx.store.records import RunRecord, RunState

LEASE = 60.0  # seconds
RENEW_EVERY = 10.0  # seconds


class Liveness(Enum):
    """What is known about a lease holder."""

    HERE = "here"
    """The process runs on this machine."""
    GONE = "gone"
    """The process has ended."""
    UNKNOWN = "unknown"
    """The process is on another machine, stopped or hidden, so its lease decides."""


_UNREAD = "-"


def lease_holder() -> str:
    """Return a name of this process in claims: machine/boot/namespace/pid/start/random."""
    return process_name() + uuid.uuid4().hex[:8]


def process_name() -> str:
    """Return how each name of this process in claims begins."""
    pid = os.getpid()
    _, start = _look(pid)
    return "/".join((machine(), _boot(), _namespace(), str(pid), start, ""))


def machine_of(name: str) -> str:
    """Return the machine of the lease holder of this name, as `kdx.store.machine.machine` calls it."""
    return name.partition("/")[0]


def liveness(name: str) -> Liveness:
    """Return what is known about the lease holder of this name."""
    parts = name.split("/")
    if len(parts) != 6 or parts[0] != machine():
        return Liveness.UNKNOWN
    _, boot, namespace, pid, start, _ = parts
    if _differ(boot, _boot()):
        return Liveness.GONE
    # Containers share the boot, but have process ids of their own.
    if namespace != _namespace():
        return Liveness.UNKNOWN
    state, started = _look(int(pid))
    if state == _UNREAD:
        return Liveness.GONE if _ended(int(pid)) else Liveness.UNKNOWN
    if state in "ZX" or _differ(start, started):  # a zombie has ended
        return Liveness.GONE
    # A process may stay stopped, as by Ctrl-Z, for days.
    return Liveness.UNKNOWN if state in "Tt" or start == _UNREAD else Liveness.HERE


@dataclass
class LeaseHolder:
    """Claims runs, renews their leases and abandons them under one name. `renew` is to be called every few seconds."""

    database: Database
    name: str = field(default_factory=lease_holder)
    clock: Callable[[], float] = time.monotonic
    """Returns seconds, by which leases are renewed; the clock of the database decides until when they hold."""

    def __post_init__(self) -> None:
        self._renewed = self.clock()

    def claim(self, run: RunRecord) -> int | None:
        """Claim a run and return the number of the attempt; None if another process holds the run."""
        gone = (run.owner,) if run.owner and liveness(run.owner) is Liveness.GONE else ()
        return claims.claim(self.database, run.id, self.name, LEASE, gone)

    def renew(self) -> int | None:
        """Extend all leases and return their number; None if it is too early."""
        if self.clock() - self._renewed <= RENEW_EVERY:
            return None
        renewed = claims.renew(self.database, self.name, LEASE)
        self._renewed = self.clock()
        return renewed

    def abandon(self, run_id: int, attempt: int, reason: str, *, stalled: bool) -> RunState | None:
        """End an attempt whose process has ended, and return the new state; None if the process had recorded its end.

        Args:
            stalled: see `kdx.store.claims.abandon`.
        """
        return claims.abandon(self.database, run_id, self.name, attempt, reason, stalled=stalled)


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _UNREAD


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink()).removeprefix("pid:")
    except OSError:
        return _UNREAD


def _look(pid: int) -> tuple[str, str]:
    """Return the state of a process, and its start in clock ticks since boot (fields 3 and 22 of its stat)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _UNREAD, _UNREAD
    return fields[0], fields[19]


def _ended(pid: int) -> bool:
    """Return whether there is certainly no process of this id; /proc often hides processes of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _differ(known: str, now: str) -> bool:
    """Return whether two values differ; nothing follows from one that could not be read."""
    return known != now and _UNREAD not in (known, now)
