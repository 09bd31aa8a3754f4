"""Leases are taken, kept and given up under one name, whatever host runs the processes."""

import pytest
from clock import Clock
from grids import TINY

from kdx.grid.load import load_grid
from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunState
from kdx.sweep import held_leases
from kdx.sweep.held_leases import LEASE, RENEW_EVERY, HeldLeases
from kdx.sweep.lease_holder import Liveness


@pytest.fixture
def database(tmp_path):
    (tmp_path / "grid.yaml").write_text(TINY % {"steps": 10, "seeds": 2})
    plan = load_grid(tmp_path / "grid.yaml")
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        recording.register(opened, plan, plan.grid)
        yield opened


def run(database):
    return reading.load_sweep(database).runs[0]


def test_a_run_is_claimed_by_one_holder(database):
    one, other = HeldLeases(database), HeldLeases(database)
    assert one.holder != other.holder
    assert one.claim(run(database)) == 1
    claimed = run(database)
    assert (claimed.state, claimed.owner) == (RunState.RUNNING, one.holder)
    assert claimed.lease_left <= LEASE
    assert other.claim(claimed) is None


def test_a_run_of_a_process_that_is_gone_is_to_be_had_before_its_lease_lapses(database, monkeypatch):
    gone, here = HeldLeases(database, "gone"), HeldLeases(database)
    gone.claim(run(database))
    assert here.claim(run(database)) is None  # nothing is known of a name of another kind
    monkeypatch.setattr(held_leases, "liveness", {"gone": Liveness.GONE}.get)
    assert here.claim(run(database)) == 2


def test_leases_are_renewed_when_it_is_time_to(database):
    def lease_until() -> float:
        with database.read() as connection:
            return connection.exec_driver_sql("SELECT lease_until FROM run WHERE state = 'running'").scalar_one()

    clock = Clock()
    leases = HeldLeases(database, clock=clock)
    leases.claim(run(database))
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE run SET lease_until = lease_until - 50")
    before = lease_until()
    clock.now += RENEW_EVERY
    assert leases.renew() is None and lease_until() == before
    clock.now += 1
    assert leases.renew() == 1, "the number of runs that it still has"
    assert lease_until() >= before + 50


def test_a_run_is_given_up_once_and_by_its_holder_alone(database):
    leases = HeldLeases(database)
    leases.claim(run(database))
    assert HeldLeases(database).abandon(run(database).id, 1, "killed", stalled=False) is None
    assert leases.abandon(run(database).id, 1, "killed", stalled=False) is RunState.INTERRUPTED
    assert leases.abandon(run(database).id, 1, "killed", stalled=False) is None
