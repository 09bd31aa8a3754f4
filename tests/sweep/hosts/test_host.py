"""A sweep asks no more of a host than `Host` has: one without processes, sockets or signals will do."""

import signal

import pytest
from grids import TINY

from kdx.errors import ServerError
from kdx.grid.load import load_grid
from kdx.run_options import RunOptions
from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.sweep.gpus import Gpus
from kdx.sweep.hosts.host import Host, HostLost
from kdx.sweep.messages import ClaimedRun
from kdx.sweep.supervisor import Supervisor


class InMemory:
    """Does each run when it is listened to."""

    def __init__(self, database) -> None:
        self.database = database
        self.waiting: list[ClaimedRun] = []
        self.signals: list[tuple[int, int | None]] = []
        self.woken = False
        self.closed: list[bool] = []

    def start(self, claimed, within):
        if not self.woken:
            self.waiting.append(claimed)
        return not self.woken

    def listen(self, seconds):
        if self.woken or not self.waiting:
            self.woken = False
            return None
        claimed = self.waiting.pop(0)
        RunWriter(self.database, claimed.run_id, claimed.lease_holder, claimed.attempt).complete(1.0, 1, 1.0, {}, 1)
        return {"event": "exit", "run": claimed.run_id, "code": 0}

    def wake(self):
        self.woken = True

    def signal(self, signum, run_id=None):
        self.signals.append((signum, run_id))

    def close(self, *, at_once):
        self.closed.append(at_once)


class Silent:
    """Hears what happens in a sweep, and does nothing."""

    def __getattr__(self, name):
        return lambda *_: None


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        yield opened


@pytest.fixture
def supervised(database):
    """Supervises a sweep of three runs through a host."""

    def supervised(host: Host, listener=None, **how) -> Supervisor:
        grid = database.location.with_name("grid.yaml")
        grid.write_text(TINY % {"steps": 10, "seeds": 3})
        plan = load_grid(grid)
        recording.register(database, plan, plan.grid)
        files = database.location.with_suffix(".files")
        return Supervisor(
            lambda: (plan,), database, str(database.location), files, 1, listener or Silent(), host, **how
        )

    return supervised


def states(database) -> list[RunState]:
    return [run.state for run in reading.load_sweep(database).runs]


def test_runs_are_started_with_what_they_are_told_and_the_host_is_closed(database, supervised):
    host, seen = InMemory(database), []
    start = host.start
    host.start = lambda claimed, within: (seen.append((claimed.options, claimed.gpu, within)), start(claimed, within))[
        1
    ]
    options = RunOptions(hang_after=33.0)
    assert supervised(host, options=options, gpus=Gpus(("1",))).run() is None
    assert seen == [(options, "1", 33.0)] * 3
    assert states(database) == [RunState.COMPLETED] * 3
    assert host.closed == [False]


def test_a_run_that_was_not_started_before_the_sweep_was_stopped_is_given_up(database, supervised):
    class Stops(Silent):
        def started(self, run, attempt):
            supervisor.stop(signal.SIGTERM)

    host = InMemory(database)
    supervisor = supervised(host, Stops())
    assert supervisor.run() == signal.SIGTERM
    assert states(database) == [RunState.INTERRUPTED, RunState.PENDING, RunState.PENDING]


def test_runs_at_work_are_asked_to_stop_once(database, supervised):
    class Stops(Silent):
        def ended(self, run, record):
            if not host.signals:
                supervisor.stop(signal.SIGTERM)

    class Slow(InMemory):
        """Has two runs, of which it ends one before it is woken and one when it hears a signal."""

        def listen(self, seconds):
            if len(self.waiting) > 1 or self.signals or self.woken:
                return super().listen(seconds)
            return None

    host = Slow(database)
    supervisor = supervised(host, Stops())
    supervisor.workers = 2
    assert supervisor.run() == signal.SIGTERM
    assert host.signals == [(signal.SIGTERM, None)]
    assert states(database) == [RunState.COMPLETED, RunState.COMPLETED, RunState.PENDING]


@pytest.mark.parametrize(("final", "lost"), [(None, 3), (ServerError("no process to be had"), 1)])
def test_a_host_that_is_lost_begins_anew_where_that_is_of_use(database, supervised, final, lost):
    class Lost(InMemory):
        def listen(self, seconds):
            self.closed.append("lost")
            raise HostLost("the host was killed", "its host was killed", final)

    host = Lost(database)
    with pytest.raises(ServerError, match="no process" if final else "the host was killed 3 times in a row"):
        supervised(host).run()
    assert host.closed == ["lost"] * lost + [False]
    run = reading.load_sweep(database).runs[0]
    assert (run.state, run.attempt, run.stalls) == (RunState.INTERRUPTED, lost, 0)
    assert {attempt.traceback for attempt in reading.attempts(database, run.id)} == {"its host was killed"}
