"""Which file an address means, and what a database in a file says of itself."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from stored import CELL, add_cell, cells, refusal

from kdx.store.database import Database, open_database
from kdx.store.sqlite.database import Sqlite

ALLOWED = "  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE"


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}", "sqlite+pysqlite:///{}"])
def test_a_path_and_a_url_open_the_same_file(database: Database, path: Path, form: str):
    add_cell(database)
    with open_database(form.format(path), write=False) as again:
        assert cells(again) == [CELL]


@pytest.mark.parametrize(
    "name", ["a b.db", "100%.db", "why?.db", "a#b.db", "ü.db", "a%20b.db", "file:x.db", os.fsdecode(b"\xff\n.db")]
)
def test_any_file_name_will_do(tmp_path: Path, name: str):
    with open_database(tmp_path / name, write=True, create=True) as database:
        add_cell(database)
    assert {file.name for file in tmp_path.iterdir()} == {name, f"{name}-journal"}
    with open_database(tmp_path / name, write=False) as database:
        assert cells(database) == [CELL]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite://", "sqlite://: several processes write it, so it must be a file\n  allowed: sqlite:///FILE"),
        (
            "sqlite:///:memory:",
            "sqlite:///:memory:: several processes write it, so it must be a file\n  allowed: sqlite:///FILE",
        ),
        (
            "sqlite://host/runs.db",
            "sqlite://host/runs.db: a database in a file has no host, user, driver or options\n"
            "  allowed: sqlite:///runs.db",
        ),
        (
            "sqlite:///runs.db?mode=ro",
            "sqlite:///runs.db?mode=ro: a database in a file has no host, user, driver or options\n"
            "  allowed: sqlite:///runs.db",
        ),
        (
            "sqlite:///%00",
            f"no file is named 'sqlite:///%00'\n{ALLOWED}",
        ),
        (
            "a\0b",
            f"no file is named 'a\\x00b'\n{ALLOWED}",
        ),
        ("", f"no file is named ''\n{ALLOWED}"),
    ],
)
def test_a_url_that_cannot_be_opened_is_reported(url: str, message: str):
    assert refusal(url) == message


def test_a_field_is_read_as_somebody_would_type_it(path: Path):
    sql = Sqlite(path, write=False).field("spec", "training.steps")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE cells (spec)")
        connection.execute('INSERT INTO cells VALUES (\'{"training": {"steps": 7}}\')')
        assert connection.execute(f"SELECT {sql} FROM cells").fetchone() == (7,)
