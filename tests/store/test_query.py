"""A question in SQL: what it gives, what it refuses, and that nothing is ever written."""

import math

import pytest
from stored import ask as query
from stored import start

from kdx.errors import KdxError
from kdx.store import recording
from kdx.store.database import open_database


@pytest.fixture
def filled(database, sweep_id, address) -> str:
    """Run 1 has three rows of a curve."""
    start(database).record([("valid/bleu", 10, 1.5), ("valid/bleu", 20, math.nan), ("valid/bleu", 30, math.inf)], 30)
    return address


def asked(address, statement) -> list:
    rows = query(address, statement)
    assert len(list(rows)) == rows.count
    return list(rows)


def test_a_curve_of_a_run(filled):
    statement = "SELECT step, value FROM curves WHERE run_id = 1 AND name = 'valid/bleu' ORDER BY step"
    assert asked(filled, statement) == [(10, 1.5), (20, None), (30, math.inf)]


def test_columns_have_their_names_each_once(filled):
    rows = query(filled, "SELECT 1 AS a, 2 AS b, 3 AS a, 4 AS a")
    assert rows.columns == ("a", "b", "a:2", "a:3")


def test_no_rows_are_an_answer(filled):
    rows = query(filled, "SELECT run_id, step FROM curves WHERE run_id = 99")
    assert (rows.columns, rows.count, list(rows)) == (("run_id", "step"), 0, [])


@pytest.mark.parametrize("statement", ["", " ", "-- nothing"])
def test_nothing_is_no_question(filled, statement):
    with pytest.raises(KdxError, match="this is no statement that gives rows"):
        query(filled, statement)


def test_whoever_reads_an_answer_at_leisure_holds_up_nobody(filled, plan_of):
    rows = query(filled, "SELECT * FROM curves")
    first = next(iter(rows))
    with open_database(filled, write=True) as database:
        database.patience = 0.1
        recording.register(database, plan_of())
    assert first in list(rows)
