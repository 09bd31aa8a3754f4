"""How often a process turns to the database with what can wait, so that any number of processes can share one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHARE = 0.01
"""Largest share of its time that a process spends on what it does at a pace."""


class Pace:
    """When something that is done again and again is due: the later, the longer it took the last time.

    What takes longer because many processes share a database becomes rarer in each of them. So they do not ask more of
    it together than it can do, and none of them waits for it for more than `SHARE` of its time.
    """

    def __init__(self, least: float, most: float, clock: Callable[[], float]) -> None:
        """A pace at which something is due for the first time after `least` seconds.

        Args:
            least: seconds from its end to the next time, at least.
            most: and at most, since one time may take long for a reason that does not last.
            clock: what tells the seconds that pass.
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
        """Takes the time of what it is for; whether it was due does not matter."""
        begun = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self.next = ended + min(self._most, max(self._least, (ended - begun) / SHARE))
