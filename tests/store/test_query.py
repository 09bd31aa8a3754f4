"""A question in SQL: what it gives, what it refuses, and that nothing is ever written."""

import math

import pytest
from stored import ask as query

from kdx.errors import KdxError, StorageError
from kdx.store import claims, reading, recording
from kdx.store import rows as module
from kdx.store.database import open_database


@pytest.fixture
def filled(database, sweep_id, address) -> str:
    """Run 1 has three rows of a curve."""
    number = claims.claim(database, 1, "me", 60)
    hand = recording.RunWriter(database, 1, "me", number)
    hand.record([("valid/bleu", 10, 1.5), ("valid/bleu", 20, math.nan), ("valid/bleu", 30, math.inf)], 30)
    return address


def asked(address, statement) -> list:
    with query(address, statement) as rows:
        assert len(list(rows)) == rows.count
        return list(rows)


def test_a_curve_of_a_run(filled):
    statement = "SELECT step, value FROM curves WHERE run_id = 1 AND name = 'valid/bleu' ORDER BY step"
    assert asked(filled, statement) == [(10, 1.5), (20, None), (30, math.inf)]


def test_columns_have_their_names_each_once(filled):
    with query(filled, "SELECT 1 AS a, 2 AS b, 3 AS a, 4 AS a") as rows:
        assert rows.columns == ("a", "b", "a:2", "a:3")


def test_no_rows_are_an_answer(filled):
    with query(filled, "SELECT run_id, step FROM curves WHERE run_id = 99") as rows:
        assert (rows.columns, rows.count, list(rows)) == (("run_id", "step"), 0, [])


@pytest.mark.parametrize("statement", ["", " ", "-- nothing"])
def test_nothing_is_no_question(filled, statement):
    with pytest.raises(KdxError, match="this is no statement that gives rows"):
        query(filled, statement)


def test_whoever_reads_an_answer_at_leisure_holds_up_nobody(filled):
    with query(filled, "SELECT * FROM curves") as rows:
        first = next(iter(rows))
        with open_database(filled, write=True) as database:
            database.patience = 0.1
            recording.register(database, reader_plan(database), {})
        assert first in list(rows)


def reader_plan(database):
    from kdx.store.plan_from_records import plan_of

    record = reading.load_sweep(database)
    grid = {"seeds": [0], "tables": [], "axes": [], "description": ""}
    return plan_of(type(record)(**{**vars(record), "grid": grid}))


def test_a_long_answer_goes_to_a_file_and_comes_back_in_order(filled, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", 1000)
    statement = (
        "WITH RECURSIVE a(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM a WHERE n < 4499) SELECT n, 'word ' || n FROM a"
    )
    assert asked(filled, statement) == [(n, f"word {n}") for n in range(4500)]


def test_no_room_for_an_answer_is_trouble_with_the_disk(filled, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.pickle, "dump", full)
    with pytest.raises(StorageError, match="no room for the answer: No space left on device"):
        query(filled, "SELECT 1")
