"""Which failures are alike and pause a cell or a search, and what blocks runs, as kdx status shows it."""

import random
import traceback
from dataclasses import replace

import pytest
from grids import TINY

from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.grid.plan import PlannedRun
from kdx.store import claims, reading, recording
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.sweep.blocked import (
    ALIKE,
    Blocked,
    Pause,
    blocked_in,
    paused_searches,
    signature,
    try_searches_again,
)
from kdx.sweep.decide import decisions_in
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train

TWO_CELLS = TINY.replace("name: tiny", "name: tiny\naxes: {kernel: [exponential, rbf]}")
THERE = "there/-/-/7/1/x"
"""A process on another machine."""


def planned(database: Database, seeds: int) -> int:
    grid = database.location.parent / "grid.yaml"
    grid.write_text(TWO_CELLS % {"steps": 10, "seeds": seeds})
    plan = load_grid(grid)
    return recording.register(database, plan)


def id_of(database: Database, run: PlannedRun) -> int:
    return reading.recorded(database, [run.cell.id])[run.key].id


def fail(database: Database, run_id: int, error: str | None = None) -> None:
    attempt = claims.claim(database, run_id, THERE, 60)
    RunWriter(database, run_id, THERE, attempt).fail(error or f"ValueError: {run_id}", "", 0)


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
    (bad, ids), (_, others) = cells.items()
    fail(database, ids[0])
    fail(database, others[0])
    fail(database, others[1], "another error")
    assert blocked(database, sweep).paused == {}
    fail(database, ids[1])
    found = blocked(database, sweep)
    assert found.waits_for == dict.fromkeys(ids[2:], "paused: 2 runs of its cell failed alike: ValueError: …")
    assert found.lines("ti ny", " --db x") == [
        f"cell {bad[:8]} of ti ny is paused: 2 runs of its cell failed alike: ValueError: …; "
        "kdx retry 'ti ny' state=failed --db x"
    ]
    assert found.as_json()["paused"] == [{"cell": bad, "runs": 2, "failed": "ValueError: …"}]
    recording.reset(database, ids[:1], (RunState.FAILED,))
    assert blocked(database, sweep).waits_for == {}


def test_a_run_waits_for_its_conditions_or_for_its_files(database):
    sweep = planned(database, 1)
    one, other = (run.id for run in reading.runs(database, sweep))
    for run_id in (one, other):
        writer = RunWriter(database, run_id, THERE, claims.claim(database, run_id, THERE, 60))
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
    other = recording.register(database, replace(load_grid(database.location.parent / "grid.yaml"), name="other"))
    ids = [run.id for run in reading.runs(database, one)]
    cell = reading.runs(database, one)[0].cell_id
    for run_id in [run.id for run in reading.runs(database, one, [cell])][:2]:
        fail(database, run_id)
    found = blocked_in(database, [one, other])
    assert found[one] == found[other] and len(found[one].waits_for) == 2
    grid = database.location.parent / "grid.yaml"
    grid.write_text(TINY.replace("name: tiny", "name: other\nkernel: rbf") % {"steps": 10, "seeds": 4})
    recording.register(database, load_grid(grid))
    found = blocked_in(database, [one, other])
    assert found[one].paused.keys() == {cell} and not found[other].paused and ids


def raised(error: Exception) -> str:
    try:
        raise error
    except Exception:
        return traceback.format_exc()


def test_an_exception_is_its_type_and_its_place():
    one, other = raised(ValueError("no 12 at 0x7f00ab")), raised(ValueError("no 13 at 0x7f11cd\nin two lines"))
    assert signature("ValueError: no 12", one) == signature("x", other) == "ValueError in raised (test_blocked.py)"
    assert signature("", raised(TypeError("no"))) == "TypeError in raised (test_blocked.py)"


def test_of_a_chain_of_exceptions_the_last_one_counts():
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise KdxError("outer", place="here", hint="do") from inner
    except KdxError:
        text = traceback.format_exc()
    function = "test_of_a_chain_of_exceptions_the_last_one_counts"
    assert signature("outer", text) == f"KdxError in {function} (test_blocked.py)"


@pytest.mark.parametrize(
    ("error", "trace", "expected"),
    [
        ("killed by SIGSEGV", "killed by SIGSEGV", "killed by SIGSEGV"),
        ("hung: no sign of life for 600 s", None, "hung: no sign of life for … s"),
        ("incomplete metrics: 3 of 17 rows\nof 0xff", None, "incomplete metrics: … of … rows"),
    ],
)
def test_where_nothing_was_raised_the_line_without_numbers_counts(error, trace, expected):
    assert signature(error, trace) == expected


@pytest.mark.slow
def test_a_search_is_paused_once_trials_of_it_failed_alike_and_goes_on_as_if_they_had_not(database, tmp_path):
    plan = plan_of(tmp_path)
    sweep = recording.register(database, plan)
    bad, good = (str(cell.search.id) for cell in plan.cells if cell.search)
    found = Searching(database, plan)
    trials = found.advance()
    first, second, *_ = (run for run in trials.runs if run.search_id == bad)
    fail(database, id_of(database, first), "no room for 12")
    assert paused_searches(database, [bad, good]) == {}
    fail(database, id_of(database, second), "no room for 13")
    pause = Pause("no room for …", 2, "search")
    assert paused_searches(database, [bad, good]) == {bad: pause}

    trials = found.advance()
    pauses = {one.run.search_id: one.pause for one in decisions_in(database, trials)}
    assert pauses == {bad: pause, good: None}
    (line,) = blocked_in(database, [sweep])[sweep].lines("tuned", "")
    assert line == (
        "search of exponential of tuned is paused: 2 runs of its search failed alike: no room for …; kdx resume tuned"
    )
    (plain,) = blocked_in(database, [sweep])[sweep].as_json()["paused_searches"]
    assert plain == {"choices": {"kernel": "exponential"}, "search": bad, "runs": 2, "failed": "no room for …"}

    try_searches_again(database, [bad, good])
    again = found.advance()
    assert {first.key, second.key} <= {run.key for run in again.runs}
    assert all(one.pause is None for one in decisions_in(database, again))
    ended = search(database, plan, random.Random(0))
    with open_database(tmp_path / "unbroken.db", write=True, create=True) as other:
        unbroken = search(other, plan, random.Random(1))
    for key in (bad, good):
        assert ended.trials(key) == unbroken.trials(key) and ended.winner(key).number == unbroken.winner(key).number


def test_a_search_with_a_trial_that_came_to_its_end_goes_on(database, tmp_path):
    plan = plan_of(tmp_path)
    recording.register(database, plan)
    found = Searching(database, plan)
    trials = found.advance()
    key = trials.runs[0].search_id
    one, *others = (run for run in trials.runs if run.search_id == key)
    train(database, one)
    for run in others:
        fail(database, id_of(database, run), "boom")
    assert len(others) >= ALIKE and paused_searches(database, [key]) == {}
    try_searches_again(database, [key])
    assert not {run.key for run in others} & {run.key for run in found.advance().runs}, "they stay failed"
