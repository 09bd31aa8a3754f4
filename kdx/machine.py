"""Which machine this is, in words that may leave it, and how many runs it takes at a time."""

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """This machine, as a hash."""
    try:
        name = Path("/etc/machine-id").read_text().strip() or os.uname().nodename
    except OSError:
        name = os.uname().nodename
    # Databases are passed on, and a machine's id is not meant to leave it.
    return hashlib.sha256(f"kdx {name}".encode()).hexdigest()[:16]


def runs_at_a_time(workers: int | None, gpus: Sequence[str]) -> int:
    """How many runs go at a time: as many as somebody says, or else as there are GPUs, or else cores."""
    return workers or len(gpus) or _cores()


def _cores() -> int:
    """Those that this process may use. Some Slurm clusters give a job cores, but do not bind its processes to them."""
    given = os.environ.get("SLURM_CPUS_ON_NODE", "")
    cores = len(os.sched_getaffinity(0))
    return min(cores, int(given)) if given.isdigit() and int(given) else cores
