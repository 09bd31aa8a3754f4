"""The interface of a host, which starts the processes of runs and reports on them to a supervisor."""

from collections.abc import Mapping
from typing import Any, Protocol

from kdx.errors import KdxError
from kdx.sweep.messages import Work


class Host(Protocol):
    """Starts processes for runs, returns their messages, and passes signals on.

    It holds no lease and reads no database: its caller claims runs and renews their leases. Only one thread uses it,
    but a signal handler may call `wake`.
    """

    def start(self, work: Work, within: float) -> bool:
        """Start a process for a run, on the GPU that it names; return False if woken before that could be done.

        Args:
            within: seconds that this may take.

        Raises:
            HostLost: no process can be started, or not in time.
        """

    def listen(self, seconds: float) -> Mapping[str, Any] | None:
        """Return the next message of a process, see `kdx.sweep.messages`; each process ends with an `exit`.

        Return None if no message came within `seconds`, or if woken.

        Raises:
            HostLost: all processes have ended without a word.
        """

    def wake(self) -> None:
        """Make `start` or `listen` return, now or when it is next called. It is safe in a signal handler."""

    def signal(self, signum: int, run_id: int | None = None) -> None:
        """Send a signal to the process of a run, or to all; a process that has ended is skipped."""

    def close(self, *, at_once: bool) -> None:
        """End all processes, and start no more.

        Args:
            at_once: whether the processes get no time to reach a safe point.
        """


class HostLost(Exception):
    """All processes of a host are gone, or none can be started. The next `start` of the host tries again.

    Args:
        problem: what happened, as a clause; it is shown, and recorded for active runs.
        final: the error to raise if trying again would not help; None if it may help.
    """

    def __init__(self, problem: str, final: KdxError | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.final = final
