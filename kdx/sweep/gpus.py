"""Finds the GPUs of this machine and their memory, and the number of runs at a time."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from kdx.errors import KdxError


@dataclass(frozen=True)
class AtATime:
    """The number of runs at a time, as set by the user."""

    workers: int | None = None
    """Number in total; default: as many as `per_gpu` allows or, without GPUs, one for each core."""
    per_gpu: int | None = None
    """Number on each GPU; default: one, or `workers` divided among the GPUs."""

    def runs(self, gpus: int) -> int:
        """Return the most runs at a time, given the number of GPUs."""
        if not gpus:
            return self.workers or _cores()
        places = gpus * self.on_each(gpus)
        return min(self.workers or places, places)

    def sharing(self, gpus: int) -> int:
        """Return the number of runs that share the memory of a GPU or, without one, that of the machine."""
        if not gpus:
            return self.runs(gpus)
        return min(self.on_each(gpus), self.runs(gpus))

    def on_each(self, gpus: int) -> int:
        """Return the number of runs at a time on each of `gpus`."""
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


def visible_gpus(root: Path = Path("/")) -> tuple[str, ...]:
    """Return the names of the GPUs that runs may use, as in `CUDA_VISIBLE_DEVICES`; empty if there is none.

    If the variable is set, these are the GPUs that it names (none if it is empty or -1); else all GPUs of the machine.

    Args:
        root: root of the file system in which NVIDIA's driver shows the GPUs.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return tuple(map(str, range(gpus_of_machine(root))))
    # CUDA, too, stops reading at the first invalid name.
    names = takewhile(lambda name: name and not name.startswith("-"), map(str.strip, named.split(",")))
    return tuple(dict.fromkeys(names))


def memory_of(names: Sequence[str]) -> dict[str, int]:
    """Return name → bytes of memory, for the given GPUs whose memory NVIDIA's driver reports.

    Args:
        names: numbers, or the beginnings of identifiers such as `GPU-8f3a`, as in `CUDA_VISIBLE_DEVICES`.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    command = [program, "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits"]
    reported: dict[str, int] = {}
    with suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
        for line in answer.stdout.splitlines():
            with suppress(ValueError):  # a line that is not a GPU, or lacks the numbers
                index, uuid, mebibytes = map(str.strip, line.split(","))
                total = int(mebibytes) * 2**20
                reported |= {name: total for name in names if name == index or uuid.startswith(name)}
    return reported


def memory(gpus: tuple[str, ...], root: Path = Path("/")) -> int | None:
    """Return the most bytes that a run can use: the memory of the largest of these GPUs, or of the machine without any.

    Args:
        root: root of the file system in which the system shows a limit of this process.

    Returns:
        None if unknown.
    """
    if gpus:
        known = memory_of(gpus)
        return max(known.values()) if len(known) == len(gpus) else None
    with suppress(OSError, ValueError):
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
        with suppress(OSError, ValueError):  # `max`: no limit
            limits.append(int((root / "sys/fs/cgroup/memory.max").read_text()))
        return min(limits)
    return None


def _cores() -> int:
    """Return the number of cores of this process; some Slurm clusters do not bind a job's processes to its cores."""
    given = os.environ.get("SLURM_CPUS_ON_NODE", "")
    cores = len(os.sched_getaffinity(0))
    return min(cores, int(given)) if given.isdigit() and int(given) else cores
