"""Paces what a process does with the database that can wait, so that any number of processes can share it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHARE = 0.01
"""Largest share of its time that a process spends on what is paced."""


class Pace:
    """Decides when something repeated is due again: the longer it took the last time, the later.

    What takes longer because many processes share a database becomes rarer in each of them. So together they do not
    overload it, and none of them waits for it for more than `SHARE` of its time.
    """

    def __init__(self, least: float, most: float, clock: Callable[[], float]) -> None:
        """Start; it is due for the first time after `least` seconds.

        Args:
            least: least seconds from one end to the next start.
            most: most seconds, since one time may take long for a reason that does not last.
            clock: returns seconds.
        """
        self._least, self._most, self._clock = least, most, clock
        self.next = clock() + least
        """When it is due, by the clock."""

    @property
    def due(self) -> bool:
        """Whether it is due now."""
        return self._clock() >= self.next

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Measure the time of what is done inside, whether it was due or not."""
        started = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self.next = ended + min(self._most, max(self._least, (ended - started) / SHARE))
