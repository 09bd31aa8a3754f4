"""`kdx status` says how far sweeps are."""

import json
import random

import pytest
from looked_after import DB, claimed, completed, planned, refused, typed

from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.sweep.lease_holder import lease_holder
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_sweeps_are_counted_with_who_works_at_them():
    first, second, _ = planned(3)
    completed(first)
    claimed(second, owner=lease_holder())
    said = typed("status")
    head, row, _, work_head, work = said.stdout.splitlines()
    assert head.split() == ["sweep", "done", "states", "time", "left"]
    assert row.split()[:4] == ["tiny", "1", "of", "3"] and row.endswith("about 0 s")
    assert work_head.split() == ["sweep", "run", "step", "for", "worker"]
    assert work.split()[:2] == ["tiny", str(second.id)] and work.endswith(" here")
    (found,) = json.loads(typed("status", "--json").stdout)
    assert found["runs"] == {"pending": 1, "running": 1, "completed": 1}
    assert found["working"][0]["run"] == second.id and found["seconds_left"] >= 0


def test_a_worker_that_is_gone_is_told_and_does_not_count():
    first, second, _ = planned(3)
    completed(first)
    machine, boot, namespace, _, start, rest = lease_holder().split("/")
    claimed(second, owner="/".join((machine, boot, namespace, "999999999", start, rest)))
    said = typed("status").stdout
    assert "which is gone" in said and "once somebody works at it" in said


def test_a_sweep_is_shown_run_by_run_and_chosen_by_words():
    first, second, third = planned(3)
    completed(first, score=2.5)
    claimed(second)
    with open_database(DB, write=True) as database:
        RunWriter(database, second.id, "me", 1).fail("no room", "", 0)
    lines = typed("status", "tiny").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["run", str(first.id), str(second.id), str(third.id)]
    assert "completed" in lines[1] and lines[1].endswith("score 2.5")
    assert "failed" in lines[2] and lines[2].endswith("no room")
    chosen = json.loads(typed("status", "tiny", "state=failed", "seed=1", "--json").stdout)
    assert [run["run"] for run in chosen["runs"]] == [second.id]
    assert typed("status", "tiny", "state=failed").stderr.endswith("1 failed; next: kdx resume tiny --failed\n")
    assert typed("resume", "--help").stdout.count("--failed")


def test_what_chooses_nothing_is_refused_with_what_was_meant():
    planned(2)
    assert refused("status", "tinny").hint == "did you mean `tiny`?"
    assert refused("status", "tiny", "stat=failed").problem == "unknown key `stat` in `stat=failed`"
    error = refused("status", "tiny", "state=pendin")
    assert error.problem == "no run has state=pendin" and error.hint == "did you mean `pending`?"
    assert refused("status", "tiny", "failed").problem == "`failed` chooses nothing"


def test_paused_cells_are_shown_with_what_goes_on():
    first, second, _ = planned(3)
    for run in (first, second):
        claimed(run)
        with open_database(DB, write=True) as database:
            RunWriter(database, run.id, "me", 1).fail(f"no room for {run.id}", "", 0)
    why = "2 runs of its cell failed alike: no room for …"
    line = f"cell {first.cell_id[:8]} of tiny is paused: {why}; kdx retry tiny --failed"
    assert typed("status").stdout.splitlines()[-2:] == ["", line]
    shown = typed("status", "tiny").stdout.splitlines()
    assert shown[-2:] == ["", line] and shown[3].endswith(f"paused: {why}")
    (found,) = json.loads(typed("status", "--json").stdout)
    assert found["paused"] == [{"cell": first.cell_id, "runs": 2, "failed": "no room for …"}]
    found = json.loads(typed("status", "tiny", "--json").stdout)
    assert [run["waits_for"] for run in found["runs"]] == [None, None, f"paused: {why}"]
    assert found["paused"] and found["failing_workers"] == []


def test_nothing_recorded_is_said():
    with open_database(DB, write=True, create=True):
        pass
    assert "no sweep is recorded here yet" in typed("status").stderr


def test_a_search_is_counted_in_trials(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
        trials = Searching(database, plan).advance()
        train(database, trials, trials.runs[0])
        claimed_run = reading.recorded(database, [trials.runs[1].cell.id])[trials.runs[1].key]
        Searching(database, plan).advance()
    claimed(claimed_run)
    said = typed("status").stdout
    assert "search: 1 of 20 trials; then the winners" in said and "for the search" in said
    assert said.splitlines()[-1].split()[:2] == ["tuned", str(claimed_run.id)]
    (found,) = json.loads(typed("status", "--json").stdout)
    assert [one["ended"] for one in found["searches"]] == [{"completed": 1}, {}]
    said = typed("status", "tuned")
    assert "exponential  1 of 10  1 completed" in said.stdout and said.stderr.startswith("search: 1 of 20 trials; ")
    assert said.stderr.endswith("next: kdx resume tuned\n")


def test_a_search_that_is_done_says_so_no_more(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        found = search(database, plan, random.Random(0)).with_winners()
        recording.register(database, found, found.grid)
    assert "search" not in typed("status").stdout
    said = typed("status", "tuned")
    assert "exponential  10 of 10" in said.stdout and "search" not in said.stderr
