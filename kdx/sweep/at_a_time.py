"""The GPUs to use, and the number of runs at a time."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kdx.errors import KdxError

AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True)
class AtATime:
    """The number of runs at a time, as set by the user."""

    workers: int | None = None
    """Number in total; default: what the GPUs have room for or, without GPUs, one for each core."""
    per_gpu: int | Literal["auto"] | None = None
    """Number on each GPU; auto: what fits into its memory. Default: one, or `workers` divided among the GPUs."""

    def runs(self, gpus: int) -> int:
        """Return the most runs at a time, given the number of GPUs."""
        if not gpus:
            return self.workers or _cores()
        on_each = self.on_each(gpus)
        # Each run keeps a core busy.
        places = gpus * on_each if on_each is not None else max(gpus, _cores())
        return min(self.workers or places, places)

    def sharing(self, gpus: int) -> int:
        """Return the number of runs that share the memory of a GPU or, without one, that of the machine."""
        if not gpus:
            return self.runs(gpus)
        return min(self.on_each(gpus) or 1, self.runs(gpus))

    def on_each(self, gpus: int) -> int | None:
        """Return the number of runs at a time on each of `gpus`; None for as many as fit."""
        if self.per_gpu == AUTO:
            return None
        return self.per_gpu or max(1, -(-(self.workers or 0) // max(gpus, 1)))


def gpus_of_machine(root: Path = Path("/")) -> int:
    """Return the number of GPUs that NVIDIA's driver shows, without CUDA: a process that used CUDA cannot fork workers.

    Args:
        root: root of the file system in which the driver shows them.
    """
    # In some containers the driver shows only its devices.
    return len([*root.glob("proc/driver/nvidia/gpus/*")] or [*root.glob("dev/nvidia[0-9]*")])


def take_devices(named: str) -> None:
    """Limit this process, and those that it starts, to these GPUs.

    Args:
        named: comma-separated numbers as in nvidia-smi, or identifiers such as `GPU-8f3a`; or `none`.

    Raises:
        KdxError: the list is invalid, or names a GPU that this machine lacks; CUDA would silently use the processor.
    """
    names = [] if named == "none" else [name.strip() for name in named.split(",")]
    if not all(re.fullmatch(r"\d+|(GPU|MIG)-[\w./-]+", name, re.ASCII) for name in names):
        raise KdxError(f"--devices `{named}`", allowed="GPUs such as 0,2 or GPU-8f3a, or none")
    count = gpus_of_machine()
    # The driver's files do not always have identifiers; under Windows (/dev/dxg) they are empty.
    countable = count or not Path("/dev/dxg").exists()
    if countable and (absent := [name for name in names if not count or (name.isdigit() and int(name) >= count)]):
        here = f"GPU 0{f' to {count - 1}' if count > 1 else ''}, or none" if count else "none, for no GPU is here"
        raise KdxError(f"--devices `{named}`: no GPU {absent[0]} here", allowed=here)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names)
    # Otherwise CUDA numbers them with the fastest first.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"


def _cores() -> int:
    """Return the number of cores of this process; some Slurm clusters do not bind a job's processes to its cores."""
    given = os.environ.get("SLURM_CPUS_ON_NODE", "")
    cores = len(os.sched_getaffinity(0))
    return min(cores, int(given)) if given.isdigit() and int(given) else cores
