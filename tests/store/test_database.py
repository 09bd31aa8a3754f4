"""Which database an address means, and what is none."""

import sys
from pathlib import Path

import pytest

from kdx.errors import DatabaseError
from kdx.store.database import database_at
from kdx.store.sqlite.file import is_database_file


def test_an_address_without_a_scheme_is_a_file(tmp_path: Path):
    for address in ("runs.db", tmp_path / "runs.db", f"sqlite:///{tmp_path}/runs.db", "sqlite+pysqlite:///runs.db"):
        assert type(database_at(address)).__name__ == "Sqlite"
    for address in ("postgresql://host/runs", "postgresql+psycopg://me@host:5432/runs?sslmode=require"):
        assert type(database_at(address)).__name__ == "Postgresql"


def test_a_missing_driver_is_told_with_the_way_to_install_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("kdx.store.postgresql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseError, match="the driver of PostgreSQL is not installed") as caught:
        database_at("postgresql://me:secret@host/runs")
    assert caught.value.hint == "pip install 'kdx[postgres]'" and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://me:secret@host/runs", "mysql://me:***@host/runs: kdx does not open mysql"),
        ("oracle+driver://me:secret@host/runs", "oracle+driver://me:***@host/runs: kdx does not open oracle"),
        ("://runs.db", "://runs.db: this is not a database URL"),
        ("postgresql://me:secret@host:port/runs", "postgresql://me:***@host:port/runs: this is not a database URL"),
        ("postgresql://[::1", "postgresql://[::1: this is not a database URL"),
    ],
)
def test_what_kdx_does_not_open_is_told_without_its_password(address: str, message: str):
    with pytest.raises(DatabaseError) as caught:
        database_at(address)
    assert str(caught.value) == f"{message}\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE"
    assert caught.value.exit_code == 3


def test_a_database_that_is_not_open_is_neither_read_nor_made(backend, nowhere: str, tmp_path: Path):
    assert not database_at(nowhere, write=True).exists()
    assert backend.content(nowhere) is None
    assert database_at(backend.make(tmp_path)).exists()


def test_a_file_that_is_a_database_is_told_from_others(tmp_path: Path):
    assert is_database_file(Path(__file__).parents[2] / "runs.db.example")
    (tmp_path / "empty").touch()
    (tmp_path / "grid.yaml").write_text("name: mine\n" * 20)
    others = ("empty", "grid.yaml", "absent", "a\0b", "x" * 300, ".")
    assert not any(is_database_file(tmp_path / name) for name in others)
