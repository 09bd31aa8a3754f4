"""The order in which a process tries to claim runs, while others try the same ones in the same order."""

import random
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")


class ClaimOrder(Iterator[_T], Generic[_T]):
    """Gives what may be claimed, the first one first, as long as no other process is faster.

    A thousand workers that begin together would else try every run one after another, half a million times in all. So
    whoever was too late goes on farther down at random, twice as far each time; what it passes over comes last.
    """

    def __init__(self, wanted: Iterable[_T]) -> None:
        self._left = deque(wanted)
        self._farthest = 1

    def __next__(self) -> _T:
        if not self._left:
            raise StopIteration
        return self._left.popleft()

    def too_late(self) -> None:
        """Another process has claimed the last one that was given."""
        self._farthest = min(2 * self._farthest, max(1, len(self._left)))
        self._left.rotate(-random.randrange(self._farthest))
