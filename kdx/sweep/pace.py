"""Paces the database work of a process that can wait, so that any number of processes can share the database."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHARE = 0.01
"""Largest share of its time that a process spends on paced work."""


class Pace:
    """Decides when repeated work is due again: the longer it took the last time, the later.

    If the work takes longer because many processes share a database, each of them does it less often. So together they
    do not overload the database, and none waits for it for more than `SHARE` of its time.
    """

    def __init__(self, least: float, most: float, clock: Callable[[], float]) -> None:
        """Start the pace; work is due for the first time after `least` seconds.

        Args:
            least: the least seconds from one end to the next start.
            most: the most seconds from one end to the next start, since a long duration may be an exception.
            clock: returns the time in seconds.
        """
        self._least, self._most, self._clock = least, most, clock
        self.next = clock() + least
        """The time at which the work is due, by the clock."""

    @property
    def due(self) -> bool:
        """Whether the work is due now."""
        return self._clock() >= self.next

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Measure the time of the block, whether it was due or not."""
        started = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self.next = ended + min(self._most, max(self._least, (ended - started) / SHARE))
