"""Chooses a GPU for a run, and the order in which a process tries to claim runs that others try as well."""

import json
import random
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, TypeVar

from kdx.errors import KdxError
from kdx.grid.plan import PlannedCell
from kdx.sweep.forecast import cost_keys
from kdx.sweep.gpus import AUTO, AtATime, memory_of

MARGIN = 1.25
"""Factor on the most memory that a run used up to its first validation, since its test may use more."""
OVERHEAD = 2**30
"""Bytes of a process on a GPU that PyTorch does not count: CUDA's context, its libraries, and gaps."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Placed:
    """A run on a GPU."""

    gpu: str
    cell: PlannedCell
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
                return Placed(name, cell, alone)
        if alone and names:
            waiting.append(Placed(names[0], cell, alone))
        return None

    def measured(self, cell: PlannedCell, held: int) -> None:
        """Note the most bytes that a run of a cell has used up to a validation."""
        for key in (cell.id, _size(cell.spec.text)):
            self._held[key] = max(held, self._held.get(key, 0))

    def _has_room(self, name: str, cell: PlannedCell, taken: Collection[Placed]) -> bool:
        """Return whether another run of a cell may share a GPU."""
        here = [placed.cell for placed in taken if placed.gpu == name]
        if self.on_each is not None:
            return len(here) < self.on_each
        needs = [self._need(beside) for beside in (cell, *here)]
        known = [need for need in needs if need is not None]
        return len(known) == len(needs) and sum(known) <= self.free[name]

    def _need(self, cell: PlannedCell) -> int | None:
        """Return the bytes that a run of a cell is expected to need; None if no similar run has been measured."""
        held = self._held.get(cell.id, self._held.get(_size(cell.spec.text)))
        return None if held is None else int(MARGIN * held) + OVERHEAD


@cache
def _size(cell: str) -> str:
    """Return a key that cells of the same sizes have in common."""
    return cost_keys(json.loads(cell))[1]


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


class ClaimOrder(Iterator[_T], Generic[_T]):
    """Yields runs in their order, as long as no other process claims them first.

    A thousand workers that start together would otherwise try every run in turn, half a million times in total. So a
    process that was too late skips a random number of runs, up to twice as many each time; the skipped runs come last.
    """

    def __init__(self, wanted: Iterable[_T]) -> None:
        self._left = deque(wanted)
        self._farthest = 1

    def __next__(self) -> _T:
        if not self._left:
            raise StopIteration
        return self._left.popleft()

    def too_late(self) -> None:
        """Note that another process had already claimed the last run."""
        self._farthest = min(2 * self._farthest, max(1, len(self._left)))
        self._left.rotate(-random.randrange(self._farthest))
