"""Chooses a GPU for a run, and the order in which a process tries to claim runs that others try as well."""

import random
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True)
class Placed:
    """The place of a run."""

    gpu: str
    alone: bool
    """Whether the run needs the GPU alone."""


@dataclass(frozen=True)
class Gpus:
    """Assigns the GPUs of a sweep: a run gets the GPU with the fewest runs that has room."""

    names: tuple[str, ...] = ()
    """Names as in `CUDA_VISIBLE_DEVICES`; if empty, runs use the default device."""
    on_each: int = 1
    """Number of runs on one GPU at a time."""

    def place(self, at_work: Collection[Placed], waiting: list[Placed], *, alone: bool = False) -> Placed | None:
        """Return the place of another run; None if no GPU has room now.

        Args:
            at_work: the places of the runs that are on GPUs now.
            waiting: places of runs that need a GPU alone and wait until it is empty; no other run gets that GPU before.
                If this run has to wait like that, its place is added.
            alone: whether the run needs the GPU alone.
        """
        alone = alone or self.on_each == 1
        taken = [*at_work, *waiting]
        runs = Counter(placed.gpu for placed in taken)
        closed = {placed.gpu for placed in taken if placed.alone}
        names = sorted((name for name in self.names if name not in closed), key=runs.__getitem__)
        if not names:
            return None
        place = Placed(names[0], alone)
        if not runs[place.gpu] or (not alone and runs[place.gpu] < self.on_each):
            return place
        if alone:
            waiting.append(place)
        return None


class ClaimOrder(Iterator[_T], Generic[_T]):
    """Yields runs in their order, as long as no other process claims them first.

    A thousand workers that start together would otherwise try every run in turn, half a million times in total. So a
    process that was too late skips a random number of runs, up to twice as many each time; the skipped runs come last.
    """

    def __init__(self, wanted: Iterable[_T]) -> None:
        self._left = deque(wanted)
        self._farthest = 1

    def __bool__(self) -> bool:
        return bool(self._left)

    def __next__(self) -> _T:
        if not self._left:
            raise StopIteration
        return self._left.popleft()

    def put_back(self, runs: Sequence[_T]) -> None:
        """Have runs that could not start yet come first again, in their order."""
        self._left.extendleft(reversed(runs))

    def too_late(self) -> None:
        """Note that another process had already claimed the last run."""
        self._farthest = min(2 * self._farthest, max(1, len(self._left)))
        self._left.rotate(-random.randrange(self._farthest))
