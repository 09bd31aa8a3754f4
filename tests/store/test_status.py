import pytest

from kdx.store import claims, reading, recording, status
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.tune.search import Searching
from tests.tune.searched import plan_of as searched_plan


def finish(database: Database, run_id: int) -> None:
    number = claims.claim(database, run_id, "me", 60)
    RunWriter(database, run_id, "me", number).complete(0.5, 10, 0.5, {}, 10)


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
        number = claims.claim(database, run_id, "me", 60)
        if facts is not None:
            RunWriter(database, run_id, "me", number).begin(facts, "data", "code")
    assert [(claim.device, claim.gpu) for claim in status.work(database)] == [
        ("H100", "3"),
        ("cpu", None),
        (None, None),
    ]


def test_a_run_of_two_sweeps_is_worked_at_for_both(database: Database, plan_of):
    one = recording.register(database, plan_of([0], 1, "one"), {})
    other = recording.register(database, plan_of([0], 1, "other"), {})
    claims.claim(database, 1, "me", 60)
    assert {each.sweep_id for each in status.work(database)} == {one, other}


def test_times_are_of_cells_that_have_runs_to_be_done(database: Database, plan_of):
    sweep_id = recording.register(database, plan_of(2, 2), {})
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
    sweep_id = recording.register(database, plan_of(20, 10), {})
    with statements() as seen:
        status.times(database, [sweep_id])
        status.work(database)
        status.labels_of(database, sweep_id)
    assert len(seen) == 7


def test_labels_come_in_the_order_of_the_plan(database: Database, plan_of):
    plan = plan_of(3, 1)
    sweep_id = recording.register(database, plan, {})
    assert list(status.labels_of(database, sweep_id)) == [cell.id for cell in plan.cells]


def test_who_works_at_a_trial_works_for_the_sweep_that_asks_for_its_search(tmp_path):
    plan = searched_plan(tmp_path)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        sweep_id = recording.register(database, plan, plan.grid)
        run = Searching(database, plan).advance().runs[0]
        record = reading.recorded(database, [run.cell.id])[run.key]
        assert status.work(database) == ()
        claims.claim(database, record.id, "me", 60)
        (found,) = status.work(database)
        assert (found.sweep_id, found.run_id, found.owner, found.of_trial) == (sweep_id, record.id, "me", True)
