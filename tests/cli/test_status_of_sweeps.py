"""How far sweeps are."""

import json

import pytest
from looked_after import DB, claimed, completed, planned, typed

from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.sweep.lease_holder import lease_holder
from kdx.tune.search import Searching
from tests.tune.searched import plan_of


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
        "search of exponential of tuned is paused: 2 runs of its search failed alike: no room for …; "
        "kdx resume tuned --failed"
    )
    assert line in typed("status").stdout.splitlines()
    (found,) = json.loads(typed("status", "--json").stdout)
    assert [one["choices"] for one in found["paused_searches"]] == [{"kernel": "exponential"}]
