"""What an address means, and how a database is made, opened and refused."""

import os
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect
from stored import CELL, add_cell, cells, refusal

from kdx.errors import DatabaseError
from kdx.store.database import Database, database_at, open_database
from kdx.store.schema import REVISION, metadata
from kdx.store.sqlite.file import is_database_file

# Addresses


def test_an_address_without_a_scheme_is_a_file(tmp_path: Path):
    for address in ("runs.db", tmp_path / "runs.db", f"sqlite:///{tmp_path}/runs.db", "sqlite+pysqlite:///runs.db"):
        assert type(database_at(address)).__name__ == "Sqlite"
    for address in ("postgresql://host/runs", "postgresql+psycopg://me@host:5432/runs?sslmode=require"):
        assert type(database_at(address)).__name__ == "Postgresql"


def test_a_missing_driver_is_reported_with_the_way_to_install_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("kdx.store.postgresql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseError, match="the driver of PostgreSQL is not installed") as caught:
        database_at("postgresql://me:secret@host/runs")
    assert (
        caught.value.hint == "in a clone of kdx: pip install -c constraints.txt '.[postgres]'"
        and "secret" not in str(caught.value)
    )


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
def test_what_kdx_does_not_open_is_reported_without_its_password(address: str, message: str):
    with pytest.raises(DatabaseError) as caught:
        database_at(address)
    assert str(caught.value) == f"{message}\n  allowed: a file, sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE"
    assert caught.value.exit_code == 3


def test_a_file_that_is_a_database_is_distinguished_from_others(tmp_path: Path):
    assert is_database_file(Path(__file__).parents[2] / "runs.db.example")
    (tmp_path / "empty").touch()
    (tmp_path / "grid.yaml").write_text("name: mine\n" * 20)
    others = ("empty", "grid.yaml", "absent", "a\0b", "x" * 300, ".")
    assert not any(is_database_file(tmp_path / name) for name in others)


# Making and opening


def test_eight_processes_make_one_database_at_once(nowhere: str, in_processes):
    def make() -> int:
        with open_database(nowhere, write=True, create=True) as database:
            add_cell(database, f"{os.getpid():032x}")
        return 0

    assert in_processes(make, 8) == ["0"] * 8
    with open_database(nowhere, write=False) as database:
        assert len(cells(database)) == 8


def test_a_failed_creation_leaves_what_can_become_a_database(nowhere: str, monkeypatch: pytest.MonkeyPatch):
    def fail(connection: Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE half (x INTEGER)")
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(metadata, "create_all", fail)
        with pytest.raises(RuntimeError):
            open_database(nowhere, write=True, create=True)
    with open_database(nowhere, write=True, create=True) as database:
        assert cells(database) == []
        with database.read() as connection:
            assert not inspect(connection).has_table("half")


@pytest.mark.parametrize("options", [{"write": False}, {"write": True, "create": True}])
@pytest.mark.parametrize("schema", ["0000", "0099"])
def test_another_schema_is_refused_untouched(backend, database: Database, address: str, schema: str, options, figure):
    with database.write() as connection:
        connection.exec_driver_sql(f"UPDATE kdx_schema SET revision = '{schema}'")
    before = backend.content(address)
    assert refusal(address, **options) == (
        f"{address}: written by another version of kdx: its schema is {schema}, this kdx knows {REVISION};"
        " nothing was changed\n  hint: use the kdx that wrote it"
    )
    assert backend.content(address) == before
    figure("refused, with the same content after it as before")


def test_opening_again_keeps_what_is_there(database: Database, address: str):
    add_cell(database)
    with open_database(address, write=True, create=True) as again:
        assert cells(again) == [CELL]
