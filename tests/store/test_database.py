"""What an address means, how a database is opened, made and refused, what transactions promise, and where files lie."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, inspect, select
from stored import CELL, add_cell, cells, refusal

from kdx.errors import DatabaseError
from kdx.run_files.files import files_beside
from kdx.store import database as module
from kdx.store.database import Database, database_at, open_database
from kdx.store.refusals import FILES
from kdx.store.schema import REVISION, VERSION_TABLE, cell, metadata
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


def test_optuna_and_kdx_keep_their_version_tables_apart(database: Database):
    with database.read() as connection:
        tables = inspect(connection).get_table_names()
    assert VERSION_TABLE in tables and "alembic_version" not in tables


def test_opening_again_keeps_what_is_there(database: Database, address: str):
    add_cell(database)
    with open_database(address, write=True, create=True) as again:
        assert cells(again) == [CELL]


# Transactions


def test_an_exception_takes_the_transaction_back(database: Database):
    with pytest.raises(RuntimeError), database.write() as connection:
        connection.execute(insert(cell).values(id=CELL, spec="{}"))
        raise RuntimeError
    assert cells(database) == []


def test_a_write_transaction_locks_from_its_start(database: Database, address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PATIENT_SECONDS", 0)
    with open_database(address, write=True) as other, database.write():
        assert cells(other) == []
        with pytest.raises(DatabaseError) as caught, other.write():
            pass
    assert str(caught.value) == (
        f"{address}: another process has kept the database locked for 0 s\n"
        "  hint: end the program that holds it, then try again"
    )


def test_a_reader_sees_one_state(database: Database, address: str, monkeypatch: pytest.MonkeyPatch):
    database.patience = 0
    with open_database(address, write=False) as reader, reader.read() as connection:
        assert connection.execute(select(cell)).all() == []
        # A writer waits for the reader, or does not disturb it.
        try:
            add_cell(database, "d" * 32)
        except DatabaseError as error:
            assert "locked" in error.problem
        assert connection.execute(select(cell)).all() == []
    add_cell(database)
    assert CELL in cells(database)


def test_questions_inside_a_transaction_are_asked_of_its_state(database: Database, address: str):
    with open_database(address, write=False) as reader:
        with reader.read() as outer, reader.read() as inner:
            assert inner is outer
        with reader.read() as another:
            assert another is not outer
        with ThreadPoolExecutor(1) as pool, reader.read() as mine:

            def theirs() -> bool:
                with reader.read() as connection:
                    return connection is mine

            assert not pool.submit(theirs).result()


@pytest.mark.parametrize("write", [False, True])
def test_an_absent_database_is_not_made_unasked(backend, nowhere: str, write: bool):
    assert refusal(nowhere, write=write) == (
        f"{nowhere}: there is no results database here\n  hint: kdx sweep makes one; name another with --db or KDX_DB"
    )
    assert not database_at(nowhere, write=True).exists()
    assert backend.content(nowhere) is None


def test_who_opens_to_read_cannot_write(database: Database, address: str, backend):
    before = backend.content(address)
    with open_database(address, write=False) as reader:
        with pytest.raises(DatabaseError), reader.read() as connection:
            connection.execute(insert(cell).values(id=CELL, spec="{}"))
        with pytest.raises(AssertionError), reader.write():
            pass
    assert backend.content(address) == before


def test_a_writer_whose_process_is_killed_leaves_nothing_of_its_transaction(database: Database, address: str):
    pid = os.fork()
    if pid == 0:
        with open_database(address, write=True) as own, own.write() as connection:
            connection.execute(insert(cell), [{"id": f"{number:032x}", "spec": "x" * 2000} for number in range(500)])
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert cells(database) == []
    add_cell(database)
    assert cells(database) == [CELL]


# The folder of files of runs


def test_each_database_has_a_folder_there(address: str, database, tmp_path, monkeypatch):
    monkeypatch.setenv(FILES, str(tmp_path / "shared"))
    assert files_beside(database.location) == tmp_path / "shared" / f"{database.id}.files"
    with open_database(address, write=False) as other:
        assert other.location == database.location


def test_home_is_understood_and_nothing_names_nothing(database, monkeypatch):
    monkeypatch.delenv(FILES, raising=False)
    default = database.location
    monkeypatch.setenv(FILES, "~/shared")
    assert database.location.parent == Path.home() / "shared"
    monkeypatch.setenv(FILES, "")
    assert database.location == default


def test_without_such_a_folder_they_lie_beside_a_file_or_among_the_data_of_the_user(database, tmp_path, monkeypatch):
    monkeypatch.delenv(FILES, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    files = files_beside(database.location)
    if database.file is None:
        assert files == tmp_path / "kdx" / "runs" / f"{database.id}.files"
    else:
        assert files == database.file.with_suffix(".files")


def test_a_database_that_is_not_there_has_a_place_on_the_same_disk(nowhere: str, tmp_path, monkeypatch):
    monkeypatch.setenv(FILES, str(tmp_path / "shared"))
    assert database_at(nowhere).location.parent == tmp_path / "shared"
