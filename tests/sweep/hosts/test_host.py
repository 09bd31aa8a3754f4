"""A sweep asks no more of a host than `Host` has: one without processes, sockets or signals will do."""

import signal

import pytest
from clock import Clock
from grids import TINY
from heard import Heard
from played_host import PlayedHost, complete

from kdx.errors import ServerError
from kdx.grid.load import load_grid
from kdx.run_options import RunOptions
from kdx.store import reading, recording
from kdx.store.records import RunState
from kdx.sweep.hosts import Host, HostLost
from kdx.sweep.placement import Gpus
from kdx.sweep.supervisor import Supervisor


@pytest.fixture
def supervised(database):
    """Supervises a sweep of three runs through a host."""

    def supervised(host: Host, heard: Heard, workers: int = 1, **how) -> Supervisor:
        grid = database.location.with_name("grid.yaml")
        grid.write_text(TINY % {"steps": 10, "seeds": 3})
        plan = load_grid(grid)
        recording.register(database, plan)
        return Supervisor(lambda: (plan,), database, workers, heard, host, clock=host.clock, **how)

    return supervised


def states(database) -> list[RunState]:
    return [run.state for run in reading.load_sweep(database).runs]


def test_runs_are_started_with_what_they_are_told_and_the_host_is_closed(database, supervised):
    host, options = PlayedHost(Clock(), complete), RunOptions(hang_after=33.0)
    assert supervised(host, Heard(), options=options, gpus=Gpus(("1",))).run() is None
    assert [(work.options, work.gpu, within) for work, within in host.started] == [(options, "1", 33.0)] * 3
    assert states(database) == [RunState.COMPLETED] * 3
    assert host.closed == [False]


def test_a_run_that_was_not_started_before_the_sweep_was_stopped_is_given_up(database, supervised):
    class Stops(Heard):
        def started(self, run, attempt):
            supervisor.stop(signal.SIGTERM)

    host = PlayedHost(Clock(), complete)
    supervisor = supervised(host, Stops())
    assert supervisor.run() == signal.SIGTERM and not host.started
    assert states(database) == [RunState.INTERRUPTED, RunState.PENDING, RunState.PENDING]


def test_runs_at_work_are_asked_to_stop_once(database, supervised):
    class Stops(Heard):
        def ended(self, run, record):
            if not host.signals:
                supervisor.stop(signal.SIGTERM)

    host = PlayedHost(Clock(), complete, seconds=1.0)
    supervisor = supervised(host, Stops(), workers=2)
    assert supervisor.run() == signal.SIGTERM
    assert host.signals == [(signal.SIGTERM, None)]
    assert states(database) == [RunState.COMPLETED, RunState.INTERRUPTED, RunState.PENDING]


@pytest.mark.parametrize(("final", "lost"), [(None, 3), (ServerError("no process to be had"), 1)])
def test_a_host_that_is_lost_begins_anew_where_that_is_of_use(database, supervised, final, lost):
    class Lost(PlayedHost):
        def listen(self, seconds):
            raise HostLost("the host was killed", final)

    host = Lost(Clock(), complete)
    with pytest.raises(ServerError, match="no process" if final else "the host was killed 3 times in a row"):
        supervised(host, Heard()).run()
    assert len(host.started) == lost and host.closed == [False]
    run = reading.load_sweep(database).runs[0]
    assert (run.state, run.attempt, run.stalls) == (RunState.INTERRUPTED, lost, 0)
    assert {attempt.traceback for attempt in reading.attempts(database, run.id)} == {"the host was killed"}
