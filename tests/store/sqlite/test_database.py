"""What of databases in files no other test asks."""

import sqlite3
from contextlib import closing
from pathlib import Path

from kdx.store.database import Database
from kdx.store.sqlite.database import Sqlite


def test_software_is_the_sqlite_that_python_carries(path: Path):
    assert Sqlite(path).software() == ("sqlite", sqlite3.sqlite_version)


def test_a_field_is_read_as_somebody_would_type_it(path: Path):
    sql = Sqlite(path, write=False).field("spec", "training.steps")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE cells (spec)")
        connection.execute('INSERT INTO cells VALUES (\'{"training": {"steps": 7}}\')')
        assert connection.execute(f"SELECT {sql} FROM cells").fetchone() == (7,)


def test_an_id_is_read_while_another_program_has_the_file_to_itself(database: Database, path: Path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert Sqlite(path, write=False).peek_id() == database.id
    (path.parent / "notes.db").write_text("no database")
    assert Sqlite(path.parent / "notes.db", write=False).peek_id() is None
