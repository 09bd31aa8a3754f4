"""Orders the runs that a process tries to claim while other processes try the same runs."""

import random
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")


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
