"""What blocks runs, as kdx status shows it."""

from dataclasses import replace

import pytest
from grids import TINY

from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.sweep.blocked import Blocked, blocked_in

TWO_CELLS = TINY.replace("name: tiny", "name: tiny\naxes: {kernel: [exponential, rbf]}")


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        yield opened


def planned(database: Database, seeds: int) -> int:
    grid = database.location.parent / "grid.yaml"
    grid.write_text(TWO_CELLS % {"steps": 10, "seeds": seeds})
    plan = load_grid(grid)
    return recording.register(database, plan, plan.grid)


def fail(database: Database, run_id: int, owner: str = "there/-/-/7/1/x") -> None:
    RunWriter(database, run_id, owner, claims.claim(database, run_id, owner, 60)).fail(f"ValueError: {run_id}", "", 0)


def blocked(database: Database, sweep: int) -> Blocked:
    return blocked_in(database, [sweep])[sweep]


def test_nothing_is_blocked_where_all_is_well(database):
    found = blocked(database, planned(database, 2))
    assert (found.paused, found.waits_for, found.lines("tiny", "")) == ({}, {}, [])
    assert found.as_json() == {"paused": [], "paused_searches": []}


def test_a_paused_cell_holds_up_its_runs_until_one_is_tried_again(database):
    sweep = planned(database, 4)
    cells = {run.cell_id: [] for run in reading.runs(database, sweep)}
    for run in reading.runs(database, sweep):
        cells[run.cell_id].append(run.id)
    (bad, ids), _ = cells.items()
    for run_id in ids[:2]:
        fail(database, run_id)
    found = blocked(database, sweep)
    assert found.waits_for == dict.fromkeys(ids[2:], "paused: 2 runs of its cell failed alike: ValueError: …")
    assert found.lines("ti ny", " --db x") == [
        f"cell {bad[:8]} of ti ny is paused: 2 runs of its cell failed alike: ValueError: …; "
        "kdx resume 'ti ny' --failed --db x"
    ]
    assert found.as_json()["paused"] == [{"cell": bad, "runs": 2, "failed": "ValueError: …"}]
    recording.reset(database, ids[:1], (RunState.FAILED,))
    assert blocked(database, sweep).waits_for == {}


def test_a_run_waits_for_its_conditions_or_for_its_files(database):
    sweep = planned(database, 1)
    one, other = (run.id for run in reading.runs(database, sweep))
    for run_id in (one, other):
        writer = RunWriter(database, run_id, "there/-/-/7/1/x", claims.claim(database, run_id, "there/-/-/7/1/x", 60))
        writer.begin({}, "data", "code")
        writer.record([], 8)
        writer.checkpoint(7)
        writer.interrupt(8)
    RunWriter(database, one, "here", claims.claim(database, one, "here", 60)).interrupt(0, refused="device A → B")
    assert blocked(database, sweep).waits_for == {
        one: "waits for a worker like machine there: device A → B",
        other: "waits for a worker that sees its files: its checkpoint at step 7 is not here but on machine there",
    }


def test_what_holds_up_several_sweeps_is_found_at_once_and_apart(database):
    one = planned(database, 4)
    other = recording.register(database, replace(load_grid(database.location.parent / "grid.yaml"), name="other"), {})
    ids = [run.id for run in reading.runs(database, one)]
    cell = reading.runs(database, one)[0].cell_id
    for run_id in [run.id for run in reading.runs(database, one, [cell])][:2]:
        fail(database, run_id)
    found = blocked_in(database, [one, other])
    assert found[one] == found[other] and len(found[one].waits_for) == 2
    grid = database.location.parent / "grid.yaml"
    grid.write_text(TINY.replace("name: tiny", "name: other\nkernel: rbf") % {"steps": 10, "seeds": 4})
    recording.register(database, load_grid(grid), {})
    found = blocked_in(database, [one, other])
    assert found[one].paused.keys() == {cell} and not found[other].paused and ids
