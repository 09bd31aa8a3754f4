"""How often a process turns to the database with what can wait, so that any number of processes can share one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

SHARE = 0.01
"""Largest share of its time that a process spends on what it does at a pace."""


class Pace:
    """When something that is done again and again is due: the later, the longer it took the last time.

    What takes longer because many processes share a database becomes rarer in each of them. So they do not ask more of
    it together than it can do, and none of them waits for it for more than `SHARE` of its time.
    """

    def __init__(self, least: float, most: float) -> None:
        """A pace at which something is due for the first time after `least` seconds.

        Args:
            least: seconds from its end to the next time, at least.
            most: and at most, since one time may take long for a reason that does not last.
        """
        self._least, self._most = least, most
        self.next = time.monotonic() + least
        """When it is due, by the monotonic clock."""

    @property
    def due(self) -> bool:
        """Whether it is due now."""
        return time.monotonic() >= self.next

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Takes the time of what it is for; whether it was due does not matter."""
        begun = time.monotonic()
        try:
            yield
        finally:
            ended = time.monotonic()
            self.next = ended + min(self._most, max(self._least, (ended - begun) / SHARE))
