"""Finds the visible GPUs and their memory, and chooses one for a run."""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from kdx.errors import KdxError
from kdx.grid.plan import PlannedCell
from kdx.sweep.at_a_time import AUTO, AtATime, gpus_of_machine
from kdx.sweep.forecast import cost_keys

MARGIN = 1.25
"""Factor on the most memory that a run used up to its first validation, since its test may use more."""
OVERHEAD = 2**30
"""Bytes of a process on a GPU that PyTorch does not count: CUDA's context, its libraries, and gaps."""


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


class GpuMemory(NamedTuple):
    """The memory of a GPU in bytes."""

    total: int
    free: int


def memory_of(names: Sequence[str]) -> dict[str, GpuMemory]:
    """Return name → memory, for the given GPUs whose memory NVIDIA's driver reports.

    Args:
        names: numbers, or the beginnings of identifiers such as `GPU-8f3a`, as in `CUDA_VISIBLE_DEVICES`.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    command = [program, "--query-gpu=index,uuid,memory.total,memory.free", "--format=csv,noheader,nounits"]
    reported: dict[str, GpuMemory] = {}
    with suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
        for line in answer.stdout.splitlines():
            with suppress(ValueError):  # a line that is not a GPU, or lacks the numbers
                index, uuid, total, free = map(str.strip, line.split(","))
                gpu = GpuMemory(int(total) * 2**20, int(free) * 2**20)
                reported |= {name: gpu for name in names if name == index or uuid.startswith(name)}
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
        return max(gpu.total for gpu in known.values()) if len(known) == len(gpus) else None
    with suppress(OSError, ValueError):
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
        with suppress(OSError, ValueError):  # `max`: no limit
            limits.append(int((root / "sys/fs/cgroup/memory.max").read_text()))
        return min(limits)
    return None


@dataclass(frozen=True)
class Placed:
    """A run on a GPU."""

    gpu: str
    cell_id: str
    alone: bool
    """Whether the run needs the GPU alone."""


@dataclass
class Gpus:
    """Assigns the GPUs of a sweep: a run gets the GPU with the fewest runs that has room.

    If as many runs share a GPU as its memory holds, the first run on it is alone until its first validation is done.
    The most memory that it used by then, with a margin, is what other runs of its cell are expected to need. The same
    holds for runs of cells of the same sizes, until a run of their own cell has been measured.
    """

    names: tuple[str, ...] = ()
    """Names as in `CUDA_VISIBLE_DEVICES`; if empty, runs use the default device."""
    on_each: int | None = 1
    """Number of runs on one GPU at a time; None for as many as its memory holds."""
    free: Mapping[str, int] = field(default_factory=dict)
    """Name → bytes of the GPU that were free before the sweep, if memory decides."""

    def __post_init__(self) -> None:
        self._sizes: dict[str, str] = {}
        """Cell id → a key that cells of the same sizes have in common."""
        self._held: dict[str, int] = {}
        """Cell id, or key of cells of the same sizes → the most bytes that a run of them used."""

    @property
    def shared(self) -> bool:
        """Whether several runs may be on one GPU."""
        return bool(self.names) and self.on_each != 1

    def place(
        self, cell: PlannedCell, at_work: Collection[Placed], waiting: list[Placed], *, alone: bool = False
    ) -> Placed | None:
        """Return the place of another run of a cell; None if no GPU has room now.

        Args:
            at_work: the runs that are on GPUs now.
            waiting: runs that need a GPU alone and wait until it is empty; no other run gets that GPU before. If this
                run has to wait like that, it is added.
            alone: whether the run needs the GPU alone.
        """
        alone = alone or not self.shared
        taken = [*at_work, *waiting]
        runs = Counter(placed.gpu for placed in taken)
        closed = {placed.gpu for placed in taken if placed.alone}
        names = sorted((name for name in self.names if name not in closed), key=runs.__getitem__)
        for name in names:
            if not runs[name] or (not alone and self._has_room(name, cell, taken)):
                return Placed(name, cell.id, alone)
        if alone and names:
            waiting.append(Placed(names[0], cell.id, alone))
        return None

    def measured(self, cell: PlannedCell, held: int) -> None:
        """Note the most bytes that a run of a cell has used up to a validation."""
        for key in (cell.id, self._size(cell)):
            self._held[key] = max(held, self._held.get(key, 0))

    def _has_room(self, name: str, cell: PlannedCell, taken: Collection[Placed]) -> bool:
        """Return whether another run of a cell may share a GPU."""
        here = [placed for placed in taken if placed.gpu == name]
        if self.on_each is not None:
            return len(here) < self.on_each
        needs = [self._need(cell.id, self._size(cell))]
        needs += [self._need(placed.cell_id, self._sizes.get(placed.cell_id, "")) for placed in here]
        known = [need for need in needs if need is not None]
        return len(known) == len(needs) and sum(known) <= self.free[name]

    def _need(self, cell_id: str, size: str) -> int | None:
        """Return the bytes that a run is expected to need; None if no similar run has been measured."""
        held = self._held.get(cell_id, self._held.get(size))
        return None if held is None else int(MARGIN * held) + OVERHEAD

    def _size(self, cell: PlannedCell) -> str:
        if cell.id not in self._sizes:
            self._sizes[cell.id] = cost_keys(json.loads(cell.spec.model_dump_json(by_alias=True)))[1]
        return self._sizes[cell.id]


def gpus_for(at_a_time: AtATime, names: tuple[str, ...]) -> Gpus:
    """Return the GPUs of this machine, shared as set by the options.

    Raises:
        KdxError: memory decides how many runs share a GPU, and the memory of one is unknown.
    """
    if not names or at_a_time.per_gpu != AUTO:
        return Gpus(names, at_a_time.on_each(len(names)))
    known = memory_of(names)
    if lacking := [name for name in names if name not in known]:
        raise KdxError(
            f"--per-gpu {AUTO}, but nvidia-smi does not report the memory of GPU {lacking[0]}",
            allowed=f"--per-gpu N, or {AUTO} where nvidia-smi runs",
        )
    return Gpus(names, None, {name: gpu.free for name, gpu in known.items()})
