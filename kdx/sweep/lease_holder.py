"""Names the holder of a lease uniquely, and finds out whether that process still lives.

Process ids are reused, so the name also has the machine, its boot and the start time. Nothing can be proved about a
process on another machine, or one whose data cannot be read; then only the lease counts.

The start time is read from /proc in ticks since boot, which never change. psutil would convert it to seconds since
1970, which change with the clock.
"""

import os
import uuid
from enum import Enum
from pathlib import Path

from kdx.store.machine import machine


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
    """The name of this process in claims: machine/boot/namespace/pid/start/random."""
    pid = os.getpid()
    _, start = _look(pid)
    return "/".join((machine(), _boot(), _namespace(), str(pid), start, uuid.uuid4().hex[:8]))


def machine_of(name: str) -> str:
    """The machine of the lease holder of this name, as `kdx.store.machine.machine` calls it."""
    return name.partition("/")[0]


def liveness(name: str) -> Liveness:
    """What is known about the lease holder of this name."""
    parts = name.split("/")
    if len(parts) != 6 or parts[0] != machine():
        return Liveness.UNKNOWN
    _, boot, namespace, pid, start, _ = parts
    if _differ(boot, _boot()):
        return Liveness.GONE
    # Containers share the boot, but have process ids of their own.
    if namespace != _namespace():
        return Liveness.UNKNOWN
    state, found = _look(int(pid))
    if state == _UNREAD:
        return Liveness.GONE if _ended(int(pid)) else Liveness.UNKNOWN
    if state in "ZX" or _differ(start, found):  # a zombie has ended
        return Liveness.GONE
    # A process may stay stopped, as by Ctrl-Z, for days.
    return Liveness.UNKNOWN if state in "Tt" or start == _UNREAD else Liveness.HERE


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
    """The state of a process, and its start in clock ticks since boot (fields 3 and 22 of its stat)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _UNREAD, _UNREAD
    return fields[0], fields[19]


def _ended(pid: int) -> bool:
    """Whether there is certainly no process of this id; /proc often hides processes of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _differ(one: str, other: str) -> bool:
    return one != other and _UNREAD not in (one, other)
