"""Runs that wait or failed: how, where they were computed last, and which processes could not resume them."""

import pytest
from sqlalchemy import insert, select
from stored import start

from kdx.store import claims, reading, recording
from kdx.store.database import Database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.store.schema import run
from kdx.store.unfinished import halted, in_progress, tracebacks


def attempt(database: Database, run_id: int, owner: str) -> RunWriter:
    return RunWriter(database, run_id, owner, claims.claim(database, run_id, owner, 60))


def computed(database: Database, run_id: int, owner: str, device: str, resumed: int = 0) -> None:
    writer = attempt(database, run_id, owner)
    writer.begin({"device": device}, "data", "code", resumed)
    writer.checkpoint(resumed + 5)
    writer.interrupt(resumed + 5)


def test_runs_under_one_environment_and_data_have_equal_conditions(database: Database, sweep_id: int):
    computed(database, 1, "one", "A")
    computed(database, 2, "one", "A")
    computed(database, 3, "other", "B")
    found = in_progress(database, [1, 2, 3, 4])
    assert found.keys() == {1, 2, 3}
    assert found[1].conditions == found[2].conditions != found[3].conditions
    assert (found[1].owner, found[3].owner) == ("one", "other")
    assert found[1].waited >= 0 and found[1].refusals == {}


def test_who_refused_is_known_until_the_run_is_computed_again(database: Database, sweep_id: int):
    computed(database, 1, "one", "A")
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE attempt SET ended = ended - 1e6")
    for owner in ("two", "three"):
        attempt(database, 1, owner).interrupt(0, refused=f"device A → {owner}")
    found = in_progress(database, [1])[1]
    assert found.refusals == {"two": "device A → two", "three": "device A → three"}
    assert found.owner == "one" and found.waited > 999_999, "a refusal begins no new wait"
    computed(database, 1, "one", "A", resumed=5)
    found = in_progress(database, [1])[1]
    assert (found.refusals, found.waited < 999_999) == ({}, True)


def test_a_run_whose_process_died_waits_since_its_lease_lapsed(database: Database, sweep_id: int):
    attempt(database, 1, "one").begin({}, "data", "code")
    assert in_progress(database, [1])[1].waited == 0
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE run SET lease_until = lease_until - 1e6")
    assert in_progress(database, [1])[1].waited == pytest.approx(1e6, rel=0.01)


def test_a_run_that_was_never_computed_is_left_out(database: Database, sweep_id: int):
    attempt(database, 1, "one").interrupt(0)
    assert in_progress(database, [1, 2]) == {}


def test_tracebacks_are_in_the_order_in_which_runs_ended(database: Database, sweep_id: int):
    for run_id in (2, 1):
        attempt(database, run_id, "me").fail("boom", f"trace of {run_id}", 3)
    attempt(database, 3, "me").complete(0.5, 10, 0.5, {}, 10)
    assert list(tracebacks(database, [1, 2, 3]).items()) == [(2, "trace of 2"), (1, "trace of 1"), (3, None)]
    assert tracebacks(database, [1]) == {1: "trace of 1"}


def test_halted_runs_are_the_newest_of_their_kind_in_each_sweep_that_plans_them(database: Database, plan_of):
    def begin(run_id: int) -> RunWriter:
        return RunWriter(database, run_id, "me", claims.claim(database, run_id, "me", 60))

    sweep = recording.register(database, plan_of(1, 7), {})
    few = recording.register(database, plan_of(1, 2, "few"), {})
    begin(1).fail("ValueError: 1", "", 0)
    begin(2).interrupt(5)
    begin(3).fail("ValueError: 3", "", 0)
    recording.reset(database, [3], (RunState.FAILED,))
    begin(4)  # runs
    start(database, 5).complete(0.5, 10, 1.0, {}, 10)
    begin(6).fail("ValueError: 6", "", 0)
    recording.repeat(database, [5])  # now pending, and never begun
    found = halted(database, [sweep, few])
    assert {key: [(run.id, run.state) for run in runs] for key, runs in found.items()} == {
        sweep: [
            (1, RunState.FAILED),
            (2, RunState.INTERRUPTED),
            (3, RunState.PENDING),
            (6, RunState.FAILED),
        ],
        few: [(1, RunState.FAILED), (2, RunState.INTERRUPTED)],
    }
    assert halted(database, [few]).keys() == {few}
    recording.register(database, plan_of(1, [1], "few"), {})
    assert [run.id for run in halted(database, [few])[few]] == [2]


def test_a_halted_run_of_an_older_generation_is_none(database: Database, sweep_id: int):
    number = claims.claim(database, 1, "me", 60)
    RunWriter(database, 1, "me", number).fail("ValueError: 1", "", 0)
    with database.write() as connection:
        row = connection.execute(select(run).where(run.c.id == 1)).one()._asdict()
        fresh = {"id": 9, "generation": 1, "state": RunState.PENDING, "attempt": 0, "error": None, "owner": None}
        connection.execute(insert(run).values({**row, **fresh}))
    assert halted(database, [sweep_id]) == {}
