"""A database is made once, and one of another schema is refused."""

import os

import pytest
from sqlalchemy import Connection, inspect
from stored import add_cell, cells, refusal

from kdx.store.database import Database, open_database
from kdx.store.schema import REVISION, VERSION_TABLE, metadata


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


def test_optuna_and_kdx_keep_their_version_tables_apart(database: Database):
    with database.read() as connection:
        tables = inspect(connection).get_table_names()
    assert VERSION_TABLE in tables and "alembic_version" not in tables
