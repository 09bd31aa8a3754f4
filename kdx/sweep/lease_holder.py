"""Who holds a lease: a name for this process that cannot be mistaken for another, and the proof that it is gone.

A process id alone is reused, so the name carries the machine, its boot, the id and the start time. Of another machine
nothing can be proved; there only the lease counts. Nor does it prove anything that something cannot be read.

The start is read from /proc and not by psutil, which makes of its ticks since boot, which databases hold and nothing
moves, seconds since 1970, which move with the clock.
"""

import os
import uuid
from enum import Enum
from pathlib import Path

from kdx.machine import machine


class Liveness(Enum):
    """What is known of a lease holder from here."""

    HERE = "here"
    """It is on this machine and works, or could."""
    GONE = "gone"
    """It has ended."""
    UNKNOWN = "unknown"
    """It is elsewhere or stopped, or cannot be seen: its lease decides."""


_UNREAD = "-"


def lease_holder() -> str:
    """This process, as claims name it: machine/boot/namespace/pid/start/random."""
    pid = os.getpid()
    _, start = _look(pid)
    return "/".join((machine(), _boot(), _namespace(), str(pid), start, uuid.uuid4().hex[:8]))


def liveness(name: str) -> Liveness:
    """What is known of the lease holder of this name."""
    parts = name.split("/")
    if len(parts) != 6 or parts[0] != machine():
        return Liveness.UNKNOWN
    _, boot, namespace, pid, start, _ = parts
    if _differ(boot, _boot()):
        return Liveness.GONE
    # Containers share the boot but not the process ids.
    if namespace != _namespace():
        return Liveness.UNKNOWN
    state, found = _look(int(pid))
    if state == _UNREAD:
        return Liveness.GONE if _ended(int(pid)) else Liveness.UNKNOWN
    if state in "ZX" or _differ(start, found):  # a zombie does nothing any more
        return Liveness.GONE
    # One that was stopped, as by Ctrl-Z, may be so for days.
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
    """State of a process, and its start in clock ticks since boot (fields 3 and 22 of its stat)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _UNREAD, _UNREAD
    return fields[0], fields[19]


def _ended(pid: int) -> bool:
    """Whether there is certainly no process of this id; processes of others are hidden in many a /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _differ(one: str, other: str) -> bool:
    return one != other and _UNREAD not in (one, other)
