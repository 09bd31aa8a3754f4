"""What completed runs cost is read with a few statements, whatever their number."""

import json

from sqlalchemy import update
from stored import start

from kdx.store import costs as module
from kdx.store import recording
from kdx.store.costs import costs
from kdx.store.database import Database
from kdx.store.schema import attempt


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
    first, second = costs(database, [])
    assert (first.seconds, first.peak_memory, first.parameters, first.steps) == (10.0, None, 1234, 10)
    assert (second.seconds, second.peak_memory) == (20.0, 5)
    cells = {cell.id: cell for cell in plan_of().cells}
    assert json.loads(first.cell) == cells[first.cell_id].spec.model_dump(mode="json", by_alias=True)


def test_of_other_cells_the_newest_are_enough(database: Database, plan_of, sweep_id: int, monkeypatch):
    for run_id in (1, 2, 3, 4):
        complete(database, run_id, 10.0 * run_id)
    monkeypatch.setattr(module, "NEWEST", 1)
    assert [cost.seconds for cost in costs(database, [])] == [40.0]
    first = plan_of().cells[0].id
    assert [cost.seconds for cost in costs(database, [first]) if cost.cell_id == first] == [10.0, 30.0]


def test_runs_of_a_clock_that_was_set_back_say_nothing(database: Database, sweep_id: int):
    complete(database, 1, -5.0)
    assert costs(database, []) == ()


def test_statements_do_not_grow_with_the_runs(database: Database, plan_of, statements):
    recording.register(database, plan_of(3, 3), {})
    for run_id in range(1, 10):
        complete(database, run_id, 1.0)
    with statements() as few:
        assert len(costs(database, [])) == 9
    assert len(few) <= 4
