"""Which failures are alike, and what pauses a cell or ends a worker."""

import random
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError
from kdx.grid.plan import PlannedRun
from kdx.store import claims, reading, recording
from kdx.store.database import Database, open_database
from kdx.store.failures import FailureRecord
from kdx.sweep.blocked import (
    ALIKE,
    Pause,
    blocked_in,
    paused,
    paused_searches,
    signature,
    try_searches_again,
)
from kdx.sweep.decide import decisions_in
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train


def raised(error: Exception) -> str:
    try:
        raise error
    except Exception:
        return traceback.format_exc()


def failure(run_id: int, cell: str = "a", error: str = "E") -> FailureRecord:
    return FailureRecord(run_id, cell, error, None)


def test_an_exception_is_its_type_and_its_place():
    one, other = raised(ValueError("no 12 at 0x7f00ab")), raised(ValueError("no 13 at 0x7f11cd\nin two lines"))
    assert signature("ValueError: no 12", one) == signature("x", other) == "ValueError in raised (test_failing.py)"
    assert signature("", raised(TypeError("no"))) == "TypeError in raised (test_failing.py)"


def test_of_a_chain_of_exceptions_the_last_one_counts():
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise KdxError("outer", place="here", hint="do") from inner
    except KdxError:
        text = traceback.format_exc()
    function = "test_of_a_chain_of_exceptions_the_last_one_counts"
    assert signature("outer", text) == f"KdxError in {function} (test_failing.py)"


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


@given(st.text(max_size=200), st.none() | st.text(max_size=200))
def test_any_error_has_one_line(error, trace):
    found = signature(error, trace)
    assert "\n" not in found and signature(error, trace) == found


def test_a_cell_is_paused_once_runs_of_it_failed_alike():
    assert paused([failure(1), failure(2, cell="b")]) == {}
    assert paused([failure(1, error="this"), failure(2, error="that")]) == {}
    found = paused([failure(1, error="step 3"), failure(2, error="step 4"), failure(3, cell="b")])
    assert found.keys() == {"a"} and found["a"].runs == ALIKE == 2
    assert str(found["a"]) == "2 runs of its cell failed alike: step …"


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        yield opened


def fail(database: Database, run: PlannedRun, error: str) -> None:
    record = reading.recorded(database, [run.cell.id])[run.key]
    writer = recording.RunWriter(database, record.id, "me", claims.claim(database, record.id, "me", 60))
    writer.fail(error, "", 0)


@pytest.mark.slow
def test_a_search_is_paused_once_trials_of_it_failed_alike_and_goes_on_as_if_they_had_not(database, tmp_path):
    plan = plan_of(tmp_path)
    sweep = recording.register(database, plan, plan.grid)
    bad, good = (str(cell.search.id) for cell in plan.cells if cell.search)
    found = Searching(database, plan)
    trials = found.advance()
    first, second, *_ = (run for run in trials.runs if run.search_id == bad)
    fail(database, first, "no room for 12")
    assert paused_searches(database, [bad, good]) == {}
    fail(database, second, "no room for 13")
    pause = Pause("no room for …", 2, "search")
    assert paused_searches(database, [bad, good]) == {bad: pause}

    trials = found.advance()
    pauses = {one.run.search_id: one.pause for one in decisions_in(database, trials)}
    assert pauses == {bad: pause, good: None}
    (line,) = blocked_in(database, [sweep])[sweep].lines("tuned", "")
    assert line == (
        "search of exponential of tuned is paused: 2 runs of its search failed alike: no room for …; "
        "kdx resume tuned --failed"
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
    recording.register(database, plan, plan.grid)
    found = Searching(database, plan)
    trials = found.advance()
    key = trials.runs[0].search_id
    one, *others = (run for run in trials.runs if run.search_id == key)
    train(database, one)
    for run in others:
        fail(database, run, "boom")
    assert len(others) >= ALIKE and paused_searches(database, [key]) == {}
    try_searches_again(database, [key])
    assert not {run.key for run in others} & {run.key for run in found.advance().runs}, "they stay failed"
