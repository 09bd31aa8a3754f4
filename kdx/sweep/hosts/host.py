"""What starts the processes of runs and tells how they fare, as a supervisor sees it."""

from collections.abc import Mapping
from typing import Any, Protocol

from kdx.errors import KdxError
from kdx.sweep.messages import Work


class Host(Protocol):
    """Starts a process for a run, tells what it says and when it ended, and passes signals on.

    It holds no lease and reads no database: whoever uses it claims runs and renews their leases. It is used by one
    thread; `wake` alone may be called by a signal handler.
    """

    def start(self, work: Work, within: float) -> bool:
        """Starts a process for the run, on the GPU that it names; False: woken before that could be done.

        Args:
            within: seconds that this may take.

        Raises:
            HostLost: it cannot be done, or not in time.
        """

    def listen(self, seconds: float) -> Mapping[str, Any] | None:
        """The next message of a process: see `kdx.sweep.messages`; each process ends with an `exit`.

        None: nothing was said for so long, or it was woken.

        Raises:
            HostLost: all processes have ended without a word.
        """

    def wake(self) -> None:
        """Has `start` or `listen` end, now or when it is next called. Safe in a signal handler."""

    def signal(self, signum: int, run_id: int | None = None) -> None:
        """Sends a signal to the process of a run, or to all; what is not there any more hears nothing."""

    def close(self, *, at_once: bool) -> None:
        """Ends all processes; it can start none any more.

        Args:
            at_once: whether they have no time to come to a safe point.
        """


class HostLost(Exception):
    """All processes of a host are gone, or none can be started. The host begins anew when it is next asked to start.

    Args:
        problem: what happened, in a clause.
        of_a_run: the same of a run that was at work.
        final: what to raise where beginning anew would be of no use; None: it may be.
    """

    def __init__(self, problem: str, of_a_run: str, final: KdxError | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.of_a_run = of_a_run
        self.final = final
