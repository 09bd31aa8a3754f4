"""Which backend an address means, and what is none."""

import subprocess
import sys
from pathlib import Path

import pytest

from kdx.errors import DatabaseError
from kdx.store.backends import BACKENDS, backend_of, is_database_file


def test_every_scheme_has_a_backend_and_a_path_is_a_file(tmp_path: Path):
    for address in ("runs.db", tmp_path / "runs.db", f"sqlite:///{tmp_path}/runs.db", "sqlite+pysqlite:///runs.db"):
        assert type(backend_of(address)).__module__ == "kdx.store.sqlite.backend"
    for address in ("postgresql://host/runs", "postgresql+psycopg://me@host:5432/runs?sslmode=require"):
        assert type(backend_of(address)).__module__ == "kdx.store.postgresql.backend"
    assert set(BACKENDS) == {"sqlite", "postgresql"}


def test_a_missing_driver_is_told_with_the_way_to_install_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("kdx.store.postgresql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseError, match="the driver of PostgreSQL is not installed") as caught:
        backend_of("postgresql://me:secret@host/runs")
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
        backend_of(address)
    assert str(caught.value) == f"{message}\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE"
    assert caught.value.exit_code == 3


def test_a_backend_neither_opens_nor_makes_anything(backend, nowhere: str, tmp_path: Path):
    for write in (False, True):
        assert not backend_of(nowhere, write=write).exists()
    assert backend.content(nowhere) is None
    assert backend_of(backend.make(tmp_path)).exists()


def test_a_backend_is_made_without_a_database_library(nowhere: str):
    code = f"import sys, kdx.store.backends as b; b.backend_of({nowhere!r}); print('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_a_file_that_is_a_database_is_told_from_others(tmp_path: Path, sqlite_file: Path):
    assert is_database_file(sqlite_file)
    (tmp_path / "empty").touch()
    (tmp_path / "grid.yaml").write_text("name: mine\n" * 20)
    others = ("empty", "grid.yaml", "absent", "a\0b", "x" * 300, ".")
    assert not any(is_database_file(tmp_path / name) for name in others)


@pytest.fixture
def sqlite_file() -> Path:
    return Path(__file__).parents[2] / "runs.db.example"
