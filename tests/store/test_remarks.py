"""Notes and tags stay on what they were put on."""

from stored import rows

from kdx.store.database import Database
from kdx.store.remarks import annotate, remarks, untag
from kdx.store.schema import note


def test_notes_and_tags_of_a_sweep_and_of_a_run_are_told_apart(database: Database, sweep_id: int):
    assert annotate(database, sweep_id=sweep_id, text="all of it", tags=["base"]) == ("base",)
    assert annotate(database, run_id=1, text="this one", tags=[]) == ()
    assert annotate(database, run_id=1, text="again", tags=["odd", "late", "odd"]) == ("odd", "late")
    found = remarks(database)
    assert [one.text for one in found.of_sweeps[sweep_id]] == ["all of it"]
    assert [one.text for one in found.of_runs[1]] == ["this one", "again"]
    assert (found.tags_of_sweeps, found.tags_of_runs) == ({sweep_id: ["base"]}, {1: ["odd", "late"]})


def test_a_tag_is_taken_back_only_from_what_is_named(database: Database, sweep_id: int):
    annotate(database, sweep_id=sweep_id, text="", tags=["odd"])
    annotate(database, run_id=1, text="", tags=["odd", "late"])
    annotate(database, run_id=2, text="", tags=["odd"])
    assert untag(database, run_id=1, tags=["odd", "base", "odd"]) == ("odd",)
    assert untag(database, sweep_id=sweep_id, tags=["odd"]) == ("odd",)
    found = remarks(database)
    assert (found.tags_of_sweeps, found.tags_of_runs) == ({}, {1: ["late"], 2: ["odd"]})


def test_a_tag_is_given_once_and_needs_no_text(database: Database, sweep_id: int):
    annotate(database, run_id=1, text="", tags=["odd"])
    assert annotate(database, run_id=1, text="", tags=["odd", "new"]) == ("new",)
    assert annotate(database, run_id=2, text="", tags=["odd"]) == ("odd",)
    assert rows(database, note) == []
