"""Orders the runs that a process tries to claim while other processes try the same runs."""

import random
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")


class ClaimOrder(Iterator[_T], Generic[_T]):
    """Yields the runs in their order as long as no other process is faster.

    A thousand workers that start together would otherwise try every run one after another, half a million times in
    all. So a process that was too late continues farther down at random, up to twice as far each time; what it passes
    over comes last.
    """

    def __init__(self, wanted: Iterable[_T]) -> None:
        self._left = deque(wanted)
        self._farthest = 1

    def __next__(self) -> _T:
        if not self._left:
            raise StopIteration
        return self._left.popleft()

    def too_late(self) -> None:
        """Note that another process had claimed the last run that was yielded."""
        self._farthest = min(2 * self._farthest, max(1, len(self._left)))
        self._left.rotate(-random.randrange(self._farthest))
