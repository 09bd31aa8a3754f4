"""A host without processes, for tests of a sweep."""

import math
import signal

from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.sweep.messages import Work


class PlayedHost:
    """Each run takes n seconds and then ends by `end`, from its work to an exit code; None: it runs until a signal.

    Time passes only while the sweep listens to it.
    """

    def __init__(self, clock, end, seconds=0.0):
        self.clock, self.end, self.seconds = clock, end, seconds
        self.works = {}
        """Run → when it ends, and its work."""
        self.messages, self.started, self.signals, self.closed = [], [], [], []
        self.woken = False

    def start(self, work, within):
        if self.woken:
            return False
        self.started.append((work, within))
        self.works[work.run_id] = self.clock() + self.seconds, work
        return True

    def listen(self, seconds):
        if self.woken:
            self.woken = False
            return None
        until = self.clock() + seconds
        assert until < 10_000.0, "the sweep has no end"
        while not self.messages and self.works and (run := min(self.works, key=lambda run: self.works[run][0])):
            due, work = self.works[run]
            if due > until:
                break
            self.clock.now = max(self.clock.now, due)
            code = self.end(work)
            self.works[run] = math.inf, work
            if code is not None:
                self._ends(run, code)
        if self.messages:
            return self.messages.pop(0)
        self.clock.now = until
        return None

    def _ends(self, run, code):
        del self.works[run]
        self.messages.append({"event": "exit", "run": run, "code": code})

    def wake(self):
        self.woken = True

    def signal(self, signum, run_id=None):
        self.signals.append((signum, run_id))
        if signum != signal.SIGUSR1:
            for run in [run for run in self.works if run_id in (None, run)]:
                self._ends(run, -signum)

    def close(self, *, at_once):
        self.closed.append(at_once)


def complete(claimed: Work) -> int:
    with open_database(claimed.database, write=True) as database:
        RunWriter(database, claimed.run_id, claimed.lease_holder, claimed.attempt).complete(1.0, 1, 1.0, {}, 1)
    return 0
