"""The leases that this process holds: runs are claimed, leases renewed, and runs given up under one name."""

import time
from dataclasses import dataclass, field

from kdx.store import leases
from kdx.store.database import Database
from kdx.store.records import RunRecord, RunState
from kdx.sweep.lease_holder import Liveness, lease_holder, liveness

LEASE = 60.0  # seconds
RENEW_EVERY = 10.0  # seconds


@dataclass
class HeldLeases:
    """Whoever runs the processes of runs holds their leases; it calls `renew` at least every few seconds."""

    database: Database
    holder: str = field(default_factory=lease_holder)

    def __post_init__(self) -> None:
        self._renewed = time.monotonic()

    def claim(self, run: RunRecord) -> int | None:
        """The number of the attempt; None: the run is not to be had, as somebody else holds it."""
        gone = (run.owner,) if run.owner and liveness(run.owner) is Liveness.GONE else ()
        return leases.claim(self.database, run.id, self.holder, LEASE, gone)

    def renew(self) -> None:
        """Extends all leases, when it is time to."""
        if time.monotonic() - self._renewed > RENEW_EVERY:
            leases.renew(self.database, self.holder, LEASE)
            self._renewed = time.monotonic()

    def abandon(self, run_id: int, attempt: int, reason: str, *, stalled: bool) -> RunState | None:
        """Gives up an attempt whose process has ended; None: it had recorded its own end, and nothing was changed.

        Args:
            stalled: see `kdx.store.leases.abandon`.
        """
        return leases.abandon(self.database, run_id, self.holder, attempt, reason, stalled=stalled)
