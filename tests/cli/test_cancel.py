"""`kdx cancel` stops runs, also those that another kdx works on; `kdx retry` takes them up again."""

import json
from types import SimpleNamespace

import pytest
from grids import LONG
from looked_after import DB, claimed, completed, planned, refused, states, typed
from waiting import wait_until

from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunState
from kdx.tune.search import Searching
from tests.tune.searched import plan_of


def test_all_that_is_not_over_is_cancelled():
    first, second, _ = planned(3)
    completed(first)
    claimed(second)
    said = typed("cancel", "tiny", "--json")
    assert json.loads(said.stdout) == {
        "cancelled": [2, 3],
        "running": [2],
        "planned_too": {},
        "jobs": 0,
        "jobs_left": [],
    }
    assert "cancelled 2 runs, 1 of them running" in said.stderr and "kdx retry tiny state=cancelled" in said.stderr
    assert states() == ["completed", "cancelled", "cancelled"]
    assert "nothing was cancelled" in typed("cancel", "tiny").stderr


def test_every_command_that_counts_cancelled_runs_names_the_one_that_takes_them_up_again():
    first, *_ = planned(3)
    completed(first)
    assert typed("report").stderr.endswith("; next: kdx resume tiny\n")
    typed("cancel", "tiny", "seed=2")
    assert typed("report").stderr.endswith("; next: kdx resume tiny\n"), "one is pending still"
    typed("cancel", "tiny")
    again = "kdx retry tiny state=cancelled\n"
    assert typed("report").stderr.endswith(f"; next: {again}")
    assert typed("status", "tiny").stderr.endswith(f"; next: {again}")


def test_runs_are_chosen_by_number_and_by_words():
    planned(3)
    typed("cancel", "2")
    typed("cancel", "tiny", "seed=2")
    assert states() == ["pending", "cancelled", "cancelled"]


def test_runs_that_other_sweeps_plan_too_are_told():
    completed(planned(3, name="k2")[0])
    planned(4)
    assert "too" not in typed("cancel", "tiny", "seed=3").stderr
    said = typed("cancel", "tiny", "--json")
    assert json.loads(said.stdout)["planned_too"] == {"k2": 2}
    assert said.stderr.startswith("cancelled 2 runs; ")
    assert said.stderr.endswith("\n2 runs of sweep `k2` too\n")


def test_jobs_that_slurm_says_nothing_of_are_left_to_the_user(monkeypatch):
    planned(1)
    silent = SimpleNamespace(queued=None, submission=SimpleNamespace(array=77))
    monkeypatch.setattr("kdx.cli.cancel.submitted", lambda database: {"tiny": [silent]})
    assert "note: Slurm does not answer here; what is left of its jobs ends with: scancel 77" in (
        typed("cancel", "tiny").stderr
    )


def test_a_run_of_a_trial_cannot_be_taken_up_again(tmp_path):
    tuned = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, tuned)
        Searching(database, tuned).advance()
        number = reading.inventory(database).runs[0].id
    said = typed("cancel", str(number)).stderr
    assert said == f"cancelled 1 run\na search counts run {number} as ended\n"
    assert "its search counts it as it ended" in refused("retry", str(number)).problem


def test_what_is_over_or_not_there_is_refused():
    first, *_ = planned(2)
    completed(first)
    assert refused("cancel", "1", "2").problem == "run 1 is completed already"
    assert states() == ["completed", "pending"]
    assert refused("cancel", "77").problem == "there is no run 77"
    assert refused("cancel", "tinny").hint == "did you mean `tiny`?"


@pytest.mark.slow
def test_a_sweep_at_work_says_so_and_goes_on_with_the_others(terminal):
    terminal.write("grid.yaml", LONG.replace("steps: 800", "steps: 100000"))
    sweep = terminal.start("sweep", "grid.yaml", "--set", "seeds=2", "--workers", "2")
    wait_until(lambda: terminal.is_at_work())
    assert terminal.type("kdx cancel 1").returncode == 0
    wait_until(lambda: "cancelled " in terminal.messages())
    first, second = terminal.runs()
    assert (first.state, first.error, second.state) == (RunState.CANCELLED, None, RunState.RUNNING)
    wait_until(lambda: terminal.runs()[1].progress_step > second.progress_step)
    assert terminal.type("kdx cancel 2").returncode == 0
    assert sweep.wait(300) == 0
    assert "2 runs: 2 cancelled" in terminal.messages()
    with open_database(terminal.folder / "runs.db", write=False) as database:
        (attempt,) = reading.attempts(database, 1)
    assert (attempt.outcome, attempt.ended is not None) == ("cancelled", True)
