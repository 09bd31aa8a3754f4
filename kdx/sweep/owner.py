"""Who holds a run: a name for this process that cannot be mistaken for another, and the proof that it is gone.

A process id alone is reused, so the name carries the machine, its boot, the id and the start time. Of another machine
nothing can be proved; there only the lease counts.
"""

import hashlib
import os
import uuid
from pathlib import Path


def owner() -> str:
    """This process, as claims name it: machine/boot/namespace/pid/start/random."""
    pid = os.getpid()
    return "/".join((_machine(), _boot(), _namespace(), str(pid), _start(pid) or "-", uuid.uuid4().hex[:8]))


def is_gone(name: str) -> bool:
    """Whether the owner is known to have ended; False where that cannot be known."""
    parts = name.split("/")
    if len(parts) != 6:
        return False
    machine, boot, namespace, pid, start, _ = parts
    if machine != _machine():
        return False
    if boot != _boot():
        return True
    # Containers share the boot but not the process ids.
    return namespace == _namespace() and _start(int(pid)) != start


def _machine() -> str:
    try:
        name = Path("/etc/machine-id").read_text().strip() or os.uname().nodename
    except OSError:
        name = os.uname().nodename
    # Databases are passed on, and a machine's id is not meant to leave it.
    return hashlib.sha256(f"kdx {name}".encode()).hexdigest()[:16]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "-"


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink()).removeprefix("pid:")
    except OSError:
        return "-"


def _start(pid: int) -> str | None:
    """Start of a process in clock ticks since boot (field 22 of its stat); None when there is none, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
