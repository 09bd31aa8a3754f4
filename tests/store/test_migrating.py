"""A database is brought to the schema of this kdx once, or refused."""

import os
import subprocess
import sys
import textwrap

import pytest
from sqlalchemy import Connection, inspect
from stored import add_cell, ask, cells, refusal

from kdx.store.database import Database, database_at, open_database
from kdx.store.recording import register
from kdx.store.schema import metadata
from kdx.store.version import REVISION


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


def test_opening_a_database_of_this_schema_does_not_load_alembic(database: Database, address: str):
    code = f"""
        import sys
        from kdx.store.database import open_database
        open_database({address!r}, write=True, create=True), open_database({address!r}, write=False)
        print("alembic" in sys.modules)
    """
    assert subprocess.check_output([sys.executable, "-c", textwrap.dedent(code)], text=True) == "False\n"


@pytest.mark.parametrize("options", [{"write": False}, {"write": True, "create": True}])
def test_a_newer_schema_is_refused_untouched(
    backend, database: Database, address: str, options: dict[str, bool], figure
):
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE kdx_alembic_version SET version_num = '0099'")
    before = backend.content(address)
    assert refusal(address, **options) == (
        f"{address}: written by a newer kdx: its schema is 0099, this kdx knows {REVISION}; nothing was changed\n"
        "  hint: upgrade kdx"
    )
    assert backend.content(address) == before
    figure("refused, with the same content after it as before")


def test_an_older_schema_is_not_brought_up_to_date_by_a_reader(backend, database: Database, address: str):
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE kdx_alembic_version SET version_num = '0000'")
    before = backend.content(address)
    assert refusal(address) == (
        f"{address}: written by an older kdx: its schema is 0000, this kdx reads {REVISION}\n"
        f"  hint: kdx db upgrade --db {address} brings it up to date"
        f"{', and keeps a copy' if database_at(address).keeps_copies else '; copy it before'}"
    )
    assert backend.content(address) == before


def test_an_earlier_schema_is_brought_up_to_date_with_its_rows_and_views(
    database: Database, address: str, plan_of, later_kdx
):
    register(database, plan_of(2, 1), {})
    with ask(address, "SELECT * FROM runs ORDER BY run_id") as rows:
        before = [*rows]
    database.close()
    later_kdx()
    with open_database(address, write=True) as upgraded:
        assert upgraded.upgraded_from == REVISION
        with upgraded.read() as connection:
            assert inspect(connection).has_table("added")
    with ask(address, "SELECT * FROM runs ORDER BY run_id") as rows:
        assert [*rows] == before and len(before) == 2
    with open_database(address, write=True) as again:
        assert again.upgraded_from is None


def test_a_database_is_brought_up_to_date_once_by_eight_processes(
    database: Database, address: str, later_kdx, in_processes
):
    database.close()
    later_kdx()

    def upgrade() -> bool:
        with open_database(address, write=True) as opened, opened.write() as connection:
            connection.exec_driver_sql("INSERT INTO added VALUES (1)")
        return True

    assert in_processes(upgrade, 8) == ["True"] * 8
    with open_database(address, write=False) as opened, opened.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM added").scalar_one() == 8


def test_a_revision_that_fails_leaves_the_database_as_it_was(
    backend, database: Database, address: str, later_kdx, monkeypatch
):
    database.close()
    later_kdx()
    monkeypatch.setenv("FAILS", "1")
    before = backend.content(address)
    with pytest.raises(RuntimeError, match="on purpose"):
        open_database(address, write=True)
    assert backend.content(address) == before
