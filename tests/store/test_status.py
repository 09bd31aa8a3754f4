"""How far runs are, who works on them, which wait or failed, and what completed ones cost."""

import pytest
from sqlalchemy import insert, select, update
from stored import start

from kdx.store import claims, reading, recording, status
from kdx.store.database import Database, open_database
from kdx.store.records import RunState
from kdx.store.schema import attempt, bits_of, metric, run
from kdx.tune.search import Searching
from tests.tune.searched import plan_of as searched_plan


def finish(database: Database, run_id: int) -> None:
    start(database, run_id).complete(0.5, 10, 0.5, {}, 10)


def test_only_claimed_runs_are_worked_at_in_the_order_of_their_claims(database: Database, sweep_id: int):
    assert status.work(database) == ()
    claims.claim(database, 3, "me", 60)
    claims.claim(database, 1, "you", 60)
    finish(database, 2)
    first, second = status.work(database)
    assert (first.run_id, first.owner, second.run_id, second.owner) == (3, "me", 1, "you")
    assert first.sweep_id == sweep_id and first.running >= second.running >= 0 and 0 < first.lease_left <= 60


def test_where_a_run_is_computed_is_known_once_it_has_started(database: Database, sweep_id: int):
    for run_id, facts in ((1, {"device": "H100", "gpu": "3"}), (2, {"device": "cpu"}), (3, None)):
        writer = start(database, run_id)
        if facts is not None:
            writer.begin(facts, "data", "code")
    assert [(claim.device, claim.gpu) for claim in status.work(database)] == [
        ("H100", "3"),
        ("cpu", None),
        (None, None),
    ]


def test_a_run_of_two_sweeps_is_worked_at_for_both(database: Database, plan_of):
    one = recording.register(database, plan_of([0], 1, "one"))
    other = recording.register(database, plan_of([0], 1, "other"))
    claims.claim(database, 1, "me", 60)
    assert {each.sweep_id for each in status.work(database)} == {one, other}


def test_times_are_of_cells_that_have_runs_to_be_done(database: Database, plan_of):
    sweep_id = recording.register(database, plan_of(2, 2))
    assert [(each.left, each.seconds) for each in status.times(database, [sweep_id])] == [(2, None), (2, None)]
    cell_of = {run.id: run.cell_id for run in reading.runs(database, sweep_id)}
    finish(database, 1)
    found = {each.cell_id: each for each in status.times(database, [sweep_id])}
    own = found.pop(cell_of[1])
    assert own.left == 1 and own.seconds is not None and own.seconds >= 0
    # The other cell has no run of its own to go by.
    (other,) = found.values()
    assert other.left == 2 and other.seconds == pytest.approx(own.seconds)
    for run_id in (2, 3, 4):
        finish(database, run_id)
    assert status.times(database, [sweep_id]) == ()


def test_questions_do_not_grow_with_the_sweep(database: Database, plan_of, statements):
    sweep_id = recording.register(database, plan_of(20, 10))
    with statements() as seen:
        status.times(database, [sweep_id])
        status.work(database)
        status.labels_of(database, sweep_id)
    assert len(seen) == 7


def test_labels_come_in_the_order_of_the_plan(database: Database, plan_of):
    plan = plan_of(3, 1)
    sweep_id = recording.register(database, plan)
    assert list(status.labels_of(database, sweep_id)) == [cell.id for cell in plan.cells]


def test_who_works_at_a_trial_works_for_the_sweep_that_asks_for_its_search(tmp_path):
    plan = searched_plan(tmp_path)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        sweep_id = recording.register(database, plan)
        run = Searching(database, plan).advance().runs[0]
        record = reading.recorded(database, [run.cell.id])[run.key]
        assert status.work(database) == ()
        claims.claim(database, record.id, "me", 60)
        (found,) = status.work(database)
        assert (found.sweep_id, found.run_id, found.owner, found.of_trial) == (sweep_id, record.id, "me", True)


def computed(database: Database, run_id: int, owner: str, device: str, resumed: int = 0) -> None:
    writer = start(database, run_id, owner)
    writer.begin({"device": device}, "data", "code", resumed)
    writer.checkpoint(resumed + 5)
    writer.interrupt(resumed + 5)


def test_runs_under_one_environment_and_data_have_equal_conditions(database: Database, sweep_id: int):
    computed(database, 1, "one", "A")
    computed(database, 2, "one", "A")
    computed(database, 3, "other", "B")
    found = status.in_progress(database, [1, 2, 3, 4])
    assert found.keys() == {1, 2, 3}
    assert found[1].conditions == found[2].conditions != found[3].conditions
    assert (found[1].owner, found[3].owner) == ("one", "other")
    assert found[1].waited >= 0 and found[1].refusals == {}


def test_who_refused_is_known_until_the_run_is_computed_again(database: Database, sweep_id: int):
    computed(database, 1, "one", "A")
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE attempt SET ended = ended - 1e6")
    for owner in ("two", "three"):
        start(database, 1, owner).interrupt(0, refused=f"device A → {owner}")
    found = status.in_progress(database, [1])[1]
    assert found.refusals == {"two": "device A → two", "three": "device A → three"}
    assert found.owner == "one" and found.waited > 999_999, "a refusal begins no new wait"
    computed(database, 1, "one", "A", resumed=5)
    found = status.in_progress(database, [1])[1]
    assert (found.refusals, found.waited < 999_999) == ({}, True)


def test_a_run_whose_process_died_waits_since_its_lease_lapsed(database: Database, sweep_id: int):
    start(database, 1, "one").begin({}, "data", "code")
    assert status.in_progress(database, [1])[1].waited == 0
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE run SET lease_until = lease_until - 1e6")
    assert status.in_progress(database, [1])[1].waited == pytest.approx(1e6, rel=0.01)


def test_a_run_that_was_never_computed_is_left_out(database: Database, sweep_id: int):
    start(database, 1, "one").interrupt(0)
    assert status.in_progress(database, [1, 2]) == {}


def test_tracebacks_are_in_the_order_in_which_runs_ended(database: Database, sweep_id: int):
    for run_id in (2, 1):
        start(database, run_id).fail("boom", f"trace of {run_id}", 3)
    start(database, 3).complete(0.5, 10, 0.5, {}, 10)
    assert list(status.tracebacks(database, [1, 2, 3]).items()) == [(2, "trace of 2"), (1, "trace of 1"), (3, None)]
    assert status.tracebacks(database, [1]) == {1: "trace of 1"}


def test_halted_runs_are_the_newest_of_their_kind_in_each_sweep_that_plans_them(database: Database, plan_of):
    sweep = recording.register(database, plan_of(1, 7))
    few = recording.register(database, plan_of(1, 2, "few"))
    start(database, 1).fail("ValueError: 1", "", 0)
    start(database, 2).interrupt(5)
    start(database, 3).fail("ValueError: 3", "", 0)
    recording.reset(database, [3], (RunState.FAILED,))
    start(database, 4)
    start(database, 5).complete(0.5, 10, 1.0, {}, 10)
    start(database, 6).fail("ValueError: 6", "", 0)
    recording.repeat(database, [5])  # now pending, and never begun
    found = status.halted(database, [sweep, few])
    assert {key: [(run.id, run.state) for run in runs] for key, runs in found.items()} == {
        sweep: [
            (1, RunState.FAILED),
            (2, RunState.INTERRUPTED),
            (3, RunState.PENDING),
            (6, RunState.FAILED),
        ],
        few: [(1, RunState.FAILED), (2, RunState.INTERRUPTED)],
    }
    assert status.halted(database, [few]).keys() == {few}
    recording.register(database, plan_of(1, [1], "few"))
    assert [run.id for run in status.halted(database, [few])[few]] == [2]


def test_a_halted_run_of_an_older_generation_is_none(database: Database, sweep_id: int):
    start(database, 1).fail("ValueError: 1", "", 0)
    with database.write() as connection:
        row = connection.execute(select(run).where(run.c.id == 1)).one()._asdict()
        fresh = {"id": 9, "generation": 1, "state": RunState.PENDING, "attempt": 0, "error": None, "owner": None}
        connection.execute(insert(run).values({**row, **fresh}))
    assert status.halted(database, [sweep_id]) == {}


def complete(database: Database, run_id: int, seconds: float, *, memory: int | None = None) -> None:
    hand = start(database, run_id)
    hand.record([("model/parameters", 0, 1234.0)], 0)
    hand.complete(1.0, 5, 1.0, {}, 10)
    with database.write() as connection:
        took = {"started": 1000.0 * run_id, "ended": 1000.0 * run_id + seconds, "peak_memory": memory}
        connection.execute(update(attempt).where(attempt.c.run_id == run_id).values(**took))


def test_each_completed_run_has_its_time_memory_and_parameters(database: Database, plan_of, sweep_id: int):
    complete(database, 2, 20.0, memory=5)
    complete(database, 1, 10.0)
    start(database, 3).diverge("no number", 10)
    first, second = status.costs(database, [])
    assert (first.seconds, first.peak_memory, first.parameters, first.steps) == (10.0, None, 1234, 10)
    assert (second.seconds, second.peak_memory) == (20.0, 5)
    cells = {cell.id: cell for cell in plan_of().cells}
    assert first.cell == cells[first.cell_id].spec.model_dump(mode="json", by_alias=True)


def test_of_other_cells_the_newest_are_enough(database: Database, plan_of, sweep_id: int, monkeypatch):
    for run_id in (1, 2, 3, 4):
        complete(database, run_id, 10.0 * run_id)
    monkeypatch.setattr(status, "NEWEST", 1)
    assert [cost.seconds for cost in status.costs(database, [])] == [40.0]
    first = plan_of().cells[0].id
    assert [cost.seconds for cost in status.costs(database, [first]) if cost.cell_id == first] == [10.0, 30.0]


def test_a_number_of_parameters_that_is_none_is_unknown(database: Database, sweep_id: int):
    complete(database, 1, 10.0)
    with database.write() as connection:
        connection.execute(update(metric).values(value=None, bits=bits_of(float("nan"))))
    assert [cost.parameters for cost in status.costs(database, [])] == [None]


def test_runs_of_a_clock_that_was_set_back_say_nothing(database: Database, sweep_id: int):
    complete(database, 1, -5.0)
    assert status.costs(database, []) == ()


def test_statements_do_not_grow_with_the_runs(database: Database, plan_of, statements):
    recording.register(database, plan_of(3, 3))
    for run_id in range(1, 10):
        complete(database, run_id, 1.0)
    with statements() as few:
        assert len(status.costs(database, [])) == 9
    assert len(few) <= 4
