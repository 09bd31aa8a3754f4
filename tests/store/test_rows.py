import sqlite3
from contextlib import closing

from kdx.store.backend import fetched


def test_columns_of_one_name_are_told_apart():
    with closing(sqlite3.connect(":memory:")) as connection:
        rows = fetched(connection.execute("SELECT 1 AS a, 'x' AS b, 2 AS a, 3 AS a"))
    assert (rows.columns, rows.count, list(rows)) == (("a", "b", "a:2", "a:3"), 1, [(1, "x", 2, 3)])
