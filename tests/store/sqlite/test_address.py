"""Which file an address means."""

from pathlib import Path

import pytest
from stored import CELL, add_cell, cells, refusal

from kdx.store.database import Database, open_database


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}", "sqlite+pysqlite:///{}"])
def test_a_path_and_a_url_open_the_same_file(database: Database, path: Path, form: str):
    add_cell(database)
    with open_database(form.format(path), write=False) as again:
        assert cells(again) == [CELL]


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "why?.db", "a#b.db", "ü.db", "a%20b.db", "file:x.db"])
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
            "mysql://me:secret@host/runs",
            "mysql://me:***@host/runs: kdx does not open mysql\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE",
        ),
        (
            "://runs.db",
            "://runs.db: this is not a database URL\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE",
        ),
        (
            "postgresql://me:secret@host:port/runs",
            "postgresql://me:***@host:port/runs: this is not a database URL\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE",
        ),
        (
            "postgresql://[::1",
            "postgresql://[::1: this is not a database URL\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE",
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
            "no file is named 'sqlite:///%00'\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE",
        ),
        (
            "a\0b",
            "no file is named 'a\\x00b'\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE",
        ),
        ("", "no file is named ''\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE"),
    ],
)
def test_a_url_that_cannot_be_opened_is_told(url: str, message: str):
    assert refusal(url) == message
