"""The ways in which a run ends before its last step without failing: it was asked to stop, or was pruned."""

import signal
from types import FrameType


class Stopped(BaseException):
    """The run has stopped at a point where it can resume. Not an `Exception`, so that no handler swallows it."""


class Pruned(Exception):
    """The recorder has ended the run after a validation: an outcome of the run, not an error."""


class StopRequest:
    """A request to stop, set by SIGTERM or SIGINT and read at safe points."""

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        """Handle both signals in this process; call it again after Lightning has replaced the handler of SIGTERM."""
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, signum: int, frame: FrameType | None) -> None:
        self.asked = True
