"""What only a file of SQLite can hold is copied into another one."""

import sqlite3
from contextlib import closing

import pytest
from filled import fill

from kdx.errors import DatabaseError
from kdx.store.copying import copy
from kdx.store.database import Database
from kdx.store.schema import note


def test_text_that_is_not_utf8_is_copied(database: Database, path, tmp_path, plan_of):
    fill(database, plan_of())
    for number, odd in enumerate([b"\xff\xfe", b"a\x00b", b"\xed\xa0\x80", b"\xc3("]):
        with database.write() as connection:
            connection.exec_driver_sql(
                f"INSERT INTO note (made, run_id, text) VALUES ({number}, 1, CAST(x'{odd.hex()}' AS TEXT))"
            )
    copy(path, tmp_path / "copy.db")
    found = []
    for file in (path, tmp_path / "copy.db"):
        with closing(sqlite3.connect(file)) as connection:
            rows = connection.execute("SELECT id, typeof(text), CAST(text AS BLOB) FROM note ORDER BY id").fetchall()
            found.append(rows)
    assert found[0] == found[1]
    assert {kind for _, kind, _ in found[1]} == {"text"}
    assert {b"\xff\xfe", b"a\x00b", b"\xc3("} <= {text for *_, text in found[1]}


def test_a_link_to_a_database_is_that_database(database: Database, path, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    with pytest.raises(DatabaseError, match="this is one database under both names"):
        copy(path, tmp_path / "link.db")
    with database.read() as connection:
        assert connection.execute(note.select()).all() == []
