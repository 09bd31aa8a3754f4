"""What transactions promise on every backend, and where the files of runs lie."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import insert, select
from stored import CELL, add_cell, cells, refusal

from kdx.errors import DatabaseError
from kdx.run_files.files import files_beside
from kdx.store import database as module
from kdx.store.database import Database, database_at, open_database
from kdx.store.refusals import BY, FILES
from kdx.store.schema import cell

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
        f"{nowhere}: there is no results database here\n  hint: kdx sweep makes one; name another with {BY}"
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
