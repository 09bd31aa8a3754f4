"""An answer can be gone through again and again, however long it is."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.store import rows as module
from kdx.store.rows import kept


@given(st.lists(st.tuples(st.integers(-10, 10), st.text(st.characters(codec="utf-8"))), max_size=30), st.integers(1, 7))
def test_rows_come_again_as_often_as_they_are_asked_for(data, chunk):
    with pytest.MonkeyPatch.context() as patch, sqlite3.connect(":memory:") as connection:
        patch.setattr(module, "CHUNK", chunk)
        connection.execute("CREATE TABLE t (a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", data)
        with kept(connection.execute("SELECT a, b, a FROM t ORDER BY rowid")) as rows:
            assert rows.columns == ("a", "b", "a:2")
            assert rows.count == len(data)
            assert list(rows) == list(rows) == [(a, b, a) for a, b in data]
