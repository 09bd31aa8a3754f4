"""Runs are taken out of tables and put back; nothing of them goes."""

from sqlalchemy import select
from stored import record, rows, start

from kdx.store import invalidations, reading, recording
from kdx.store.database import Database
from kdx.store.schema import invalidation, run


def ended(database: Database, run_id: int) -> None:
    start(database, run_id).complete(1.0, 10, 1.0, {}, 10)


def test_a_run_is_out_of_tables_until_the_reason_is_withdrawn(database: Database, sweep_id: int):
    ended(database, 1)
    before = rows(database, run)
    invalidations.invalidate(database, [1], "the corpus was cut")
    assert record(database).invalidated == "the corpus was cut"
    assert record(database, 2).invalidated is None
    assert invalidations.withdraw(database, [1, 2]) == 1
    assert record(database).invalidated is None
    assert rows(database, run) == before
    (kept,) = rows(database, invalidation)
    assert kept.why == "the corpus was cut" and kept.withdrawn >= kept.made


def test_the_newest_reason_is_told_and_all_are_withdrawn_at_once(database: Database, sweep_id: int):
    ended(database, 1)
    invalidations.invalidate(database, [1], "first")
    invalidations.invalidate(database, [1], "second")
    with database.read() as connection:
        assert invalidations.reasons(connection) == {1: "second"}
    assert invalidations.withdraw(database, [1]) == 2
    with database.read() as connection:
        assert invalidations.reasons(connection) == {}
        assert connection.scalars(select(invalidation.c.why)).all() == ["first", "second"]


def test_a_report_has_the_older_generations_of_a_run_that_is_out(database: Database, sweep_id: int):
    ended(database, 1)
    (second,) = recording.repeat(database, [1])
    ended(database, second)
    (third,) = recording.repeat(database, [second])
    ended(database, third)
    own = {each.id for each in reading.load_sweep(database, sweep_id).runs if each.seed == 0}
    assert third in own and 1 not in own
    invalidations.invalidate(database, [third], "cut")
    own = {each.id for each in reading.load_sweep(database, sweep_id).runs if each.seed == 0}
    assert {1, second, third} <= own
