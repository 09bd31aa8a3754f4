"""Remarks stay on what they were put on; a run is taken out of tables and put back, and nothing of it goes."""

from stored import record, rows, start

from kdx.store import reading, recording
from kdx.store.database import Database
from kdx.store.records import RemarkKind
from kdx.store.remarks import annotate, invalidate, reasons, remarks, untag, withdraw
from kdx.store.schema import remark, run


def test_notes_and_tags_of_a_sweep_and_of_a_run_are_kept_apart(database: Database, sweep_id: int):
    assert annotate(database, sweep_id=sweep_id, text="all of it", tags=["base"]) == ("base",)
    assert annotate(database, run_id=1, text="this one", tags=[]) == ()
    assert annotate(database, run_id=1, text="again", tags=["odd", "late", "odd"]) == ("odd", "late")
    found = remarks(database)
    assert [note.text for note in found.of_sweeps[sweep_id]] == ["all of it"]
    assert [note.text for note in found.of_runs[1]] == ["this one", "again"]
    assert (found.tags_of_sweeps, found.tags_of_runs) == ({sweep_id: ["base"]}, {1: ["odd", "late"]})
    assert annotate(database, run_id=1, text="", tags=["odd", "new"]) == ("new",), "a tag is given once"
    assert annotate(database, run_id=2, text="", tags=["odd"]) == ("odd",)
    assert [row.kind for row in rows(database, remark)].count(RemarkKind.NOTE) == 3, "and needs no text"


def test_a_tag_is_taken_back_only_from_what_is_named(database: Database, sweep_id: int):
    annotate(database, sweep_id=sweep_id, text="", tags=["odd"])
    annotate(database, run_id=1, text="", tags=["odd", "late"])
    annotate(database, run_id=2, text="", tags=["odd"])
    assert untag(database, run_id=1, tags=["odd", "base", "odd"]) == ("odd",)
    assert untag(database, sweep_id=sweep_id, tags=["odd"]) == ("odd",)
    found = remarks(database)
    assert (found.tags_of_sweeps, found.tags_of_runs) == ({}, {1: ["late"], 2: ["odd"]})


def ended(database: Database, run_id: int) -> None:
    start(database, run_id).complete(1.0, 10, 1.0, {}, 10)


def test_a_run_is_out_of_tables_until_the_reason_is_withdrawn(database: Database, sweep_id: int):
    ended(database, 1)
    before = rows(database, run)
    invalidate(database, [1], "first")
    invalidate(database, [1], "the corpus was cut")
    with database.read() as connection:
        assert reasons(connection) == {1: "the corpus was cut"}
    assert record(database).invalidated == "the corpus was cut"
    assert record(database, 2).invalidated is None
    assert withdraw(database, [1, 2]) == 2
    assert record(database).invalidated is None
    assert rows(database, run) == before
    assert rows(database, remark) == []


def test_a_report_has_the_older_generations_of_a_run_that_is_out(database: Database, sweep_id: int):
    ended(database, 1)
    (second,) = recording.repeat(database, [1])
    ended(database, second)
    (third,) = recording.repeat(database, [second])
    ended(database, third)
    own = {each.id for each in reading.load_sweep(database, sweep_id).runs if each.seed == 0}
    assert third in own and 1 not in own
    invalidate(database, [third], "cut")
    own = {each.id for each in reading.load_sweep(database, sweep_id).runs if each.seed == 0}
    assert {1, second, third} <= own
