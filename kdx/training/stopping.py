"""How a run ends before its last step without having failed: it is asked to stop, or it is pruned."""

import signal
from types import FrameType


class Stopped(BaseException):
    """The run has stopped at a point where it can resume. Not an `Exception`, so that no handler swallows it."""


class Pruned(Exception):
    """The recorder has ended the run after a validation: an outcome of the run, not an error."""


class StopRequest:
    """Set by SIGTERM or SIGINT, read at safe points."""

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        """Take over both signals in this process; Lightning replaces SIGTERM's handler, so call it again after that."""
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, signum: int, frame: FrameType | None) -> None:
        self.asked = True
