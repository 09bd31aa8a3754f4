"""Which machine this is, in words that may leave it, which of its GPUs to take, and how many runs at a time."""

import hashlib
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from kdx.errors import KdxError

AUTO: Literal["auto"] = "auto"


@cache
def machine() -> str:
    """This machine, as a hash."""
    try:
        name = Path("/etc/machine-id").read_text().strip() or os.uname().nodename
    except OSError:
        name = os.uname().nodename
    # Databases are passed on, and a machine's id is not meant to leave it.
    return hashlib.sha256(f"kdx {name}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class AtATime:
    """How many runs go at a time, as somebody says."""

    workers: int | None = None
    """Altogether; None: as many as GPUs have places for, or else as there are cores."""
    per_gpu: int | Literal["auto"] | None = None
    """On each GPU; auto: as many as fit into its memory. None: one, or `workers` divided among the GPUs."""

    def runs(self, gpus: int) -> int:
        """At a time and at most, given how many GPUs there are."""
        if not gpus:
            return self.workers or _cores()
        on_each = self.on_each(gpus)
        # Each run keeps a core busy.
        places = gpus * on_each if on_each is not None else max(gpus, _cores())
        return min(self.workers or places, places)

    def sharing(self, gpus: int) -> int:
        """How many of them share the memory of one GPU, or without any that of the machine, whatever they need."""
        if not gpus:
            return self.runs(gpus)
        return min(self.on_each(gpus) or 1, self.runs(gpus))

    def on_each(self, gpus: int) -> int | None:
        """Runs on each of so many GPUs at a time; None: as many as fit."""
        if self.per_gpu == AUTO:
            return None
        return self.per_gpu or max(1, -(-(self.workers or 0) // max(gpus, 1)))


def gpus_of_machine(root: Path = Path("/")) -> int:
    """The number of GPUs that NVIDIA's driver shows; CUDA is not asked, for a process that used it cannot fork workers.

    Args:
        root: root of the file system in which the driver shows them.
    """
    # In some containers the driver shows only its devices.
    return len([*root.glob("proc/driver/nvidia/gpus/*")] or [*root.glob("dev/nvidia[0-9]*")])


def take_devices(named: str) -> None:
    """Lets this process and those that it starts see these GPUs alone.

    Args:
        named: numbers as nvidia-smi has them, or identifiers such as `GPU-8f3a`, with commas between; `none`.

    Raises:
        KdxError: it is no such list, or this machine has no such GPU: CUDA would pass over it and compute on the
            processor.
    """
    names = [] if named == "none" else [name.strip() for name in named.split(",")]
    if not all(re.fullmatch(r"\d+|(GPU|MIG)-[\w./-]+", name, re.ASCII) for name in names):
        raise KdxError(f"--devices `{named}`", allowed="GPUs such as 0,2 or GPU-8f3a, or none")
    count = gpus_of_machine()
    # The driver's files do not always list identifiers; under Windows (/dev/dxg) they list nothing.
    countable = count or not Path("/dev/dxg").exists()
    if countable and (absent := [name for name in names if not count or (name.isdigit() and int(name) >= count)]):
        here = f"GPU 0{f' to {count - 1}' if count > 1 else ''}, or none" if count else "none, for no GPU is here"
        raise KdxError(f"--devices `{named}`: no GPU {absent[0]} here", allowed=here)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names)
    # Else CUDA numbers them with the fastest first.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"


def _cores() -> int:
    """Those that this process may use. Some Slurm clusters give a job cores, but do not bind its processes to them."""
    given = os.environ.get("SLURM_CPUS_ON_NODE", "")
    cores = len(os.sched_getaffinity(0))
    return min(cores, int(given)) if given.isdigit() and int(given) else cores
