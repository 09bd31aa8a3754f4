"""`kdx resume` goes on with what is unfinished; how a run itself goes on is tested in test_sweep."""

from pathlib import Path

import pytest
from grids import TINY
from looked_after import typed

from kdx.cli import running
from kdx.errors import DatabaseError, KdxError
from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunState
from kdx.sweep.gpus import AtATime


def planned(name: str, state: str | None = None, steps: int = 10, **how) -> None:
    """A sweep of one run, which is in some state."""
    Path("grid.yaml").write_text((TINY % {"steps": steps, "seeds": 1}).replace("name: tiny", f"name: {name}"))
    plan = load_grid("grid.yaml")
    with open_database("runs.db", write=True, create=True) as database:
        recording.register(database, plan)
        if state:
            (run,) = reading.load_sweep(database, name).runs
            attempt = claims.claim(database, run.id, "me", 60.0)
            assert attempt is not None
            getattr(recording.RunWriter(database, run.id, "me", attempt), state)(**how)


COMPLETED = {"valid_score": 1.0, "valid_step": 1, "test_score": 1.0, "definitions": {}, "last_step": 10}
FAILED = {"error": "boom", "traceback": "…", "last_step": 0}


def test_every_unfinished_sweep_goes_on_and_no_other(ran):
    planned("done", "complete", steps=1, **COMPLETED)
    planned("failed", "fail", steps=2, **FAILED)
    planned("waiting", steps=3)
    planned("stopped", "interrupt", steps=4, last_step=3)
    result = typed("resume", "--workers", "3")
    assert result.exit_code == 4, "a failed run stands"
    assert result.stderr == "1 run failed before; try them again with: kdx retry failed state=failed\n"
    assert {plan.name for plan in ran} == {"waiting", "stopped"}
    assert {(runner.context.db, runner.at_a_time) for runner in ran.runners} == {("runs.db", AtATime(3))}


def test_the_plan_is_the_one_that_was_recorded_not_the_file_of_today(ran, folder):
    planned("one")
    (folder / "grid.yaml").unlink()
    typed("resume", "one")
    assert [(plan.name, len(plan.runs)) for plan in ran] == [("one", 1)]


@pytest.mark.parametrize(("arguments", "command"), [((), "kdx report"), (("done",), "kdx report done")])
def test_when_nothing_is_unfinished_it_says_so(ran, arguments, command):
    planned("done", "complete", **COMPLETED)
    result = typed("resume", *arguments)
    assert (result.exit_code, result.stderr, ran) == (0, f"nothing is unfinished; next: {command}\n", [])


def test_failed_runs_stay_failed_and_the_commands_that_try_them_again_are_shown(ran):
    planned("bad", "fail", **FAILED)
    result = typed("resume", "bad")
    assert (result.exit_code, ran) == (4, []), "else `until kdx resume; do :; done` would end with runs missing"
    assert result.stderr == "1 run failed before; try them again with: kdx retry bad state=failed\n"
    planned("worse", "fail", steps=2, **FAILED)
    again = "kdx retry worse state=failed && kdx retry bad state=failed"
    assert typed("resume").stderr == f"2 runs failed before; try them again with: {again}\n"
    with open_database("runs.db", write=False) as database:
        assert {run.state for run in reading.load_sweep(database).runs} == {RunState.FAILED}


def test_failures_do_not_keep_other_sweeps_waiting_and_an_interruption_stops_all(ran):
    planned("one", steps=1)
    planned("two", steps=2)
    ran.codes = {"two": running.FAILED}
    assert typed("resume").exit_code == 4
    assert [plan.name for plan in ran] == ["two", "one"]
    ran.clear()
    planned("bad", "fail", steps=3, **FAILED)
    ran.codes = {"two": 130}
    result = typed("resume")
    assert (result.exit_code, result.stderr) == (130, ""), "the last word is how to go on with what was stopped"
    assert [plan.name for plan in ran] == ["two"]


def test_what_is_not_there_is_refused(ran):
    with pytest.raises(DatabaseError, match="there is no results database here"):
        typed("resume")
    planned("quick")
    with pytest.raises(KdxError, match="there is no sweep `quik`\n  allowed: quick\n  hint: did you mean `quick`"):
        typed("resume", "quik")
