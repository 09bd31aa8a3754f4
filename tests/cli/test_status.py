"""`kdx status` says how far sweeps are."""

import json
import random

import pytest
from looked_after import DB, claimed, completed, failed, planned, typed

from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.sweep.lease_holder import lease_holder
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train


def test_paused_cells_are_shown_with_what_goes_on():
    first, second, _ = planned(3)
    for run in (first, second):
        failed(run, f"no room for {run.id}")
    why = "2 runs of its cell failed alike: no room for …"
    line = f"cell {first.cell_id[:8]} of tiny is paused: {why}; kdx retry tiny state=failed"
    assert typed("status").stdout.splitlines()[-2:] == ["", line]
    told = typed("status", "tiny")
    shown = told.stdout.splitlines()
    assert shown[-2:] == ["", line] and shown[3].endswith(f"paused: {why}")
    assert told.stderr.endswith(
        f"2 failed, 1 paused; see why with: kdx logs {second.id}; next: kdx retry tiny state=failed\n"
    ), "kdx resume alone would do nothing"
    (found,) = json.loads(typed("status", "--json").stdout)
    assert found["paused"] == [{"cell": first.cell_id, "runs": 2, "failed": "no room for …"}]
    found = json.loads(typed("status", "tiny", "--json").stdout)
    assert [run["waits_for"] for run in found["runs"]] == [None, None, f"paused: {why}"]
    assert found["paused"]


def test_a_search_is_counted_in_trials(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
        trials = Searching(database, plan).advance()
        train(database, trials.runs[0])
        claimed_run = reading.recorded(database, [trials.runs[1].cell.id])[trials.runs[1].key]
        Searching(database, plan).advance()
    claimed(claimed_run)
    said = typed("status").stdout
    assert "search: 1 of 20 trials; then the winners" in said and "for the search" in said
    assert said.splitlines()[-1].split()[:2] == ["tuned", str(claimed_run.id)]
    (found,) = json.loads(typed("status", "--json").stdout)
    assert [search["ended"] for search in found["searches"]] == [{"completed": 1}, {}]
    said = typed("status", "tuned")
    assert "exponential  1 of 10  1 completed" in said.stdout and said.stderr.startswith("search: 1 of 20 trials; ")
    assert said.stderr.endswith("next: kdx resume tuned\n")


@pytest.mark.slow
def test_a_search_that_is_done_says_so_no_more(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        found = search(database, plan, random.Random(0)).with_winners()
        recording.register(database, found, found.grid)
    assert "search" not in typed("status").stdout
    said = typed("status", "tuned")
    assert "exponential  10 of 10" in said.stdout and "search" not in said.stderr


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


def test_nothing_recorded_is_said():
    with open_database(DB, write=True, create=True):
        pass
    assert "no sweep is recorded here yet" in typed("status").stderr


def test_a_paused_search_is_shown_with_what_goes_on(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
        trials = Searching(database, plan).advance()
        first, second = trials.runs[0], trials.runs[2]
        assert first.search_id == second.search_id
        for run in (first, second):
            record = reading.recorded(database, [run.cell.id])[run.key]
            claim = claims.claim(database, record.id, "me", 60)
            RunWriter(database, record.id, "me", claim).fail(f"no room for {record.id}", "", 0)
    line = (
        "search of exponential of tuned is paused: 2 runs of its search failed alike: no room for …; kdx resume tuned"
    )
    assert line in typed("status").stdout.splitlines()
    (found,) = json.loads(typed("status", "--json").stdout)
    assert [search["choices"] for search in found["paused_searches"]] == [{"kernel": "exponential"}]
