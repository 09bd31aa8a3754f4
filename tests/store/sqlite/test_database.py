"""What of databases in files no other test asks."""

import sqlite3
from contextlib import closing
from pathlib import Path

from kdx.store.sqlite.database import Sqlite


def test_software_is_the_sqlite_that_python_carries(path: Path):
    assert Sqlite(path).software() == ("sqlite", sqlite3.sqlite_version)


def test_a_field_is_read_as_somebody_would_type_it(path: Path):
    sql = Sqlite(path, write=False).field("spec", "training.steps")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE cells (spec)")
        connection.execute('INSERT INTO cells VALUES (\'{"training": {"steps": 7}}\')')
        assert connection.execute(f"SELECT {sql} FROM cells").fetchone() == (7,)
