"""The leases that this process holds: it claims runs, renews their leases and abandons them under one name."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kdx.store import claims
from kdx.store.database import Database
from kdx.store.records import RunRecord, RunState
from kdx.sweep.lease_holder import Liveness, lease_holder, liveness

LEASE = 60.0  # seconds
RENEW_EVERY = 10.0  # seconds


@dataclass
class HeldLeases:
    """The leases of the process that runs the processes of runs; it calls `renew` at least every few seconds."""

    database: Database
    holder: str = field(default_factory=lease_holder)
    clock: Callable[[], float] = time.monotonic
    """What tells when leases are to be renewed; until when they hold, the clock of the database tells."""

    def __post_init__(self) -> None:
        self._renewed = self.clock()

    def claim(self, run: RunRecord) -> int | None:
        """Claims a run and returns the number of the attempt; None if another process holds the run."""
        gone = (run.owner,) if run.owner and liveness(run.owner) is Liveness.GONE else ()
        return claims.claim(self.database, run.id, self.holder, LEASE, gone)

    def renew(self) -> int | None:
        """Extends all leases, if the last time was long enough ago; how many, or None where it was not."""
        if self.clock() - self._renewed <= RENEW_EVERY:
            return None
        renewed = claims.renew(self.database, self.holder, LEASE)
        self._renewed = self.clock()
        return renewed

    def abandon(self, run_id: int, attempt: int, reason: str, *, stalled: bool) -> RunState | None:
        """Ends an attempt whose process has ended; None if it had recorded its own end, and nothing was changed.

        Args:
            stalled: see `kdx.store.claims.abandon`.
        """
        return claims.abandon(self.database, run_id, self.holder, attempt, reason, stalled=stalled)
