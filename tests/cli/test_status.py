"""`kdx status` says how far sweeps are."""

import json
import random

import pytest
from looked_after import DB, claimed, planned, typed

from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_paused_cells_are_shown_with_what_goes_on():
    first, second, _ = planned(3)
    for run in (first, second):
        claimed(run)
        with open_database(DB, write=True) as database:
            RunWriter(database, run.id, "me", 1).fail(f"no room for {run.id}", "", 0)
    why = "2 runs of its cell failed alike: no room for …"
    line = f"cell {first.cell_id[:8]} of tiny is paused: {why}; kdx resume tiny --failed"
    assert typed("status").stdout.splitlines()[-2:] == ["", line]
    told = typed("status", "tiny")
    shown = told.stdout.splitlines()
    assert shown[-2:] == ["", line] and shown[3].endswith(f"paused: {why}")
    assert told.stderr.endswith(
        f"2 failed, 1 paused; see why with: kdx logs {second.id}; next: kdx resume tiny --failed\n"
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
    assert [one["ended"] for one in found["searches"]] == [{"completed": 1}, {}]
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


def test_a_sweep_may_be_named_by_its_grid_file():
    planned(2)
    assert typed("status", "grid.yaml").output == typed("status", "tiny").output
