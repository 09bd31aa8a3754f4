"""Finds the visible GPUs and their memory, and chooses one for a run."""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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
"""Times the most memory that a run held until its first validation, which its test may exceed."""
OVERHEAD = 2**30
"""Bytes of a process on a GPU that PyTorch does not count as held: CUDA's context, its libraries, and gaps."""


def visible_gpus(root: Path = Path("/")) -> tuple[str, ...]:
    """The names of the GPUs that runs may use, as in `CUDA_VISIBLE_DEVICES`; empty where there is none.

    If the variable is set, these are the GPUs that it names (none if it is empty or -1), else all of the machine.

    Args:
        root: root of the file system in which NVIDIA's driver shows the GPUs.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return tuple(map(str, range(gpus_of_machine(root))))
    # CUDA too stops reading at the first invalid name.
    names = takewhile(lambda name: name and not name.startswith("-"), map(str.strip, named.split(",")))
    return tuple(dict.fromkeys(names))


class GpuMemory(NamedTuple):
    """Bytes of a GPU."""

    total: int
    free: int


def memory_of(names: Sequence[str]) -> dict[str, GpuMemory]:
    """Each of these GPUs whose memory NVIDIA's driver says; those of which it does not are left out.

    Args:
        names: numbers, or the beginnings of identifiers such as `GPU-8f3a`, as in `CUDA_VISIBLE_DEVICES`.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    command = [program, "--query-gpu=index,uuid,memory.total,memory.free", "--format=csv,noheader,nounits"]
    found: dict[str, GpuMemory] = {}
    with suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
        for line in answer.stdout.splitlines():
            with suppress(ValueError):  # a line that is no GPU, or one without such numbers
                index, uuid, total, free = (one.strip() for one in line.split(","))
                its = GpuMemory(int(total) * 2**20, int(free) * 2**20)
                found |= {name: its for name in names if name == index or uuid.startswith(name)}
    return found


@dataclass(frozen=True)
class Placed:
    """A run at work on a GPU."""

    gpu: str
    cell_id: str
    alone: bool
    """Whether it is to have the GPU for itself."""


@dataclass
class Gpus:
    """The GPUs of a sweep, and which of them a run gets: the one with the fewest runs on which it has a place.

    Where as many runs share a GPU as fit, the first run on it is alone until its first validation is done. The most
    memory that it held by then is what other runs of its cell are expected to need, with a margin, and those of cells
    of the same sizes until one of theirs has been measured.
    """

    names: tuple[str, ...] = ()
    """As in `CUDA_VISIBLE_DEVICES`; none: runs use whatever they find."""
    on_each: int | None = 1
    """Runs on one GPU at a time; None: as many as fit."""
    free: Mapping[str, int] = field(default_factory=dict)
    """Where as many share one as fit, the bytes of each that were free before the sweep."""

    def __post_init__(self) -> None:
        self._sizes: dict[str, str] = {}
        """Cell id → what cells of the same sizes have in common."""
        self._held: dict[str, int] = {}
        """Cell id, or what cells of the same sizes have in common → the most bytes that a run of them held."""

    @property
    def shared(self) -> bool:
        """Whether several runs may be on one GPU."""
        return bool(self.names) and self.on_each != 1

    def place(self, cell: PlannedCell, at_work: Collection[Placed], *, alone: bool = False) -> str | None:
        """The GPU for another run of a cell; None: there is no place now.

        Args:
            at_work: the runs that are on GPUs now; one that is to be alone and waits for its GPU to become empty is
                among them.
            alone: whether the run is to have the GPU for itself.
        """
        runs = Counter(one.gpu for one in at_work)
        closed = {one.gpu for one in at_work if one.alone}
        most = 1 if alone else self.on_each
        places = [
            name
            for name in self.names
            if name not in closed
            and (not runs[name] or (runs[name] < most if most is not None else self._fits(name, cell, at_work)))
        ]
        return min(places, key=runs.__getitem__, default=None)

    def least_used(self, at_work: Collection[Placed]) -> str | None:
        """The GPU that a run which is to be alone waits for; None: others wait for each of them."""
        runs = Counter(one.gpu for one in at_work)
        closed = {one.gpu for one in at_work if one.alone}
        return min((name for name in self.names if name not in closed), key=runs.__getitem__, default=None)

    def measured(self, cell: PlannedCell, held: int) -> None:
        """Takes the most bytes that a run of a cell has held up to a validation."""
        for key in (cell.id, self._size(cell)):
            self._held[key] = max(held, self._held.get(key, 0))

    def _fits(self, name: str, cell: PlannedCell, at_work: Iterable[Placed]) -> bool:
        needs = [self._need(cell.id, self._size(cell))]
        needs += [self._need(one.cell_id, self._sizes.get(one.cell_id, "")) for one in at_work if one.gpu == name]
        known = [need for need in needs if need is not None]
        return len(known) == len(needs) and sum(known) <= self.free[name]

    def _need(self, cell_id: str, size: str) -> int | None:
        """Bytes that a run is expected to need; None: no like run has been measured."""
        held = self._held.get(cell_id, self._held.get(size))
        return None if held is None else int(MARGIN * held) + OVERHEAD

    def _size(self, cell: PlannedCell) -> str:
        if cell.id not in self._sizes:
            self._sizes[cell.id] = cost_keys(json.loads(cell.spec.model_dump_json(by_alias=True)))[1]
        return self._sizes[cell.id]


def gpus_for(at_a_time: AtATime, names: tuple[str, ...]) -> Gpus:
    """The GPUs of this machine, shared as somebody asks.

    Raises:
        KdxError: as many runs are to share one as fit, and nobody knows how much memory it has.
    """
    if not names or at_a_time.per_gpu != AUTO:
        return Gpus(names, at_a_time.on_each(len(names)))
    known = memory_of(names)
    if lacking := [name for name in names if name not in known]:
        raise KdxError(
            f"--per-gpu {AUTO}, but nvidia-smi does not say how much memory GPU {lacking[0]} has",
            allowed=f"--per-gpu N, or {AUTO} where nvidia-smi runs",
        )
    return Gpus(names, None, {name: its.free for name, its in known.items()})
