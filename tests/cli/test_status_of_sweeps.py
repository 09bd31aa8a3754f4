"""How far sweeps are."""

import json

import pytest
from looked_after import DB, claimed, completed, planned, typed

from kdx.store.database import open_database
from kdx.sweep.lease_holder import lease_holder


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
