"""A copy of a database has every bit of every row, or nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filled import contents, fill
from sides import made
from sqlalchemy import func, select, update

from kdx.errors import DatabaseError
from kdx.run_files.folder_ownership import stranger
from kdx.store import leases, verbatim
from kdx.store.backends import backend_of
from kdx.store.check import check
from kdx.store.copying import copy
from kdx.store.database import Database, open_database
from kdx.store.recording import register
from kdx.store.schema import identity, metadata, metric, run, sweep


@pytest.fixture
def other(backend, tmp_path) -> str:
    """Another address, at which there is nothing."""
    (tmp_path / "other").mkdir()
    return backend.nowhere(tmp_path / "other")


@pytest.fixture
def full(database: Database, plan_of) -> Database:
    fill(database, plan_of())
    return database


def raw(database: Database) -> dict[str, list[verbatim.Row]]:
    with database.read() as connection:
        return {
            table.name: sorted((row for rows in verbatim.read(connection, table) for row in rows), key=repr)
            for table in metadata.sorted_tables
        }


def test_every_row_of_every_table_is_copied(full: Database, address, other):
    seen = []
    copied = copy(address, other, lambda done, of: seen.append((done, of)))
    with open_database(other, write=False) as new:
        assert repr(raw(new)) == repr(raw(full))
        assert contents(new) == contents(full)
        assert check(new).faults == check(full).faults
        assert new.id == full.id
    assert all(rows for rows in copied.rows.values())
    assert set(copied.rows) == set(metadata.tables), "a table is not copied"
    assert seen[-1] == (2 * sum(copied.rows.values()),) * 2
    assert (copied.location, copied.former_location) == (backend_of(other).location, full.location)


def test_files_of_the_database_that_are_copied_too_are_those_of_the_copy(full: Database, address, other):
    copy(address, other)
    with open_database(other, write=False) as new:
        assert stranger(new) is None


def test_the_copy_goes_on(full: Database, address, other, plan_of):
    copy(address, other)
    with open_database(other, write=True) as new:
        register(new, plan_of(3, name="further"), {"tables": []})
        with new.read() as connection:
            assert connection.scalar(select(func.count()).select_from(sweep)) == 2
        assert leases.claim(new, 4, "me", 60) == 1
    assert len(raw(full)["sweep"]) == 1


def test_many_rows_come_in_batches(database: Database, address, other, sweep_id, monkeypatch, statements):
    monkeypatch.setattr(verbatim, "AT_A_TIME", 10)
    rows = [{"run_id": 1, "name": "train/loss", "step": step, "value": 1.0, "bits": 1} for step in range(95)]
    with database.write() as connection:
        connection.execute(metric.insert().values(writes=1, differs=0), rows)
    with statements() as sent:
        assert copy(address, other).rows["metric"] == 95
    assert len([one for one in sent if one.startswith("INSERT INTO metric")]) == 10


def test_an_empty_database_takes_a_copy(full: Database, backend, address, tmp_path):
    other = made(backend, tmp_path / "empty")
    copy(address, other)
    with open_database(other, write=False) as new:
        assert contents(new) == contents(full)


def test_nothing_is_overwritten(full: Database, backend, address, other, plan_of):
    with open_database(other, write=True, create=True) as new:
        register(new, plan_of(1), {"tables": []})
    before = backend.content(other)
    with pytest.raises(DatabaseError, match="there are results in it already"):
        copy(address, other)
    assert backend.content(other) == before


def test_a_database_is_not_copied_into_itself(backend, address, tmp_path):
    """Also an empty one, which would wait for itself."""
    before = backend.content(address)
    with pytest.raises(DatabaseError, match="this is one database under both names"):
        copy(address, address)
    assert backend.content(address) == before


def test_without_a_source_there_is_no_copy(backend, nowhere, other):
    with pytest.raises(DatabaseError, match="there is no results database here"):
        copy(nowhere, other)
    assert backend.content(other) is None


@pytest.mark.parametrize("older", ["source", "target"])
def test_another_schema_is_refused_and_named(full: Database, backend, address, tmp_path, older):
    other = made(backend, tmp_path / "empty")
    which = address if older == "source" else other
    backend.execute(which, "UPDATE kdx_alembic_version SET version_num = '0000'")
    before = backend.content(other)
    with pytest.raises(DatabaseError, match="written by an older kdx: its schema is 0000") as caught:
        copy(address, other)
    assert caught.value.place == which
    assert caught.value.hint is not None and f"kdx db upgrade --db {which}" in caught.value.hint
    assert backend.content(other) == before


def test_a_newer_schema_is_refused(full: Database, backend, address, other):
    backend.execute(address, "UPDATE kdx_alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseError, match="written by a newer kdx") as caught:
        copy(address, other)
    assert caught.value.hint == "upgrade kdx"


def test_what_was_written_otherwise_is_not_kept(full: Database, address, other, monkeypatch):
    write = verbatim.write

    def lossy(connection, table, rows):
        write(connection, table, rows)
        if table is metric:
            connection.execute(update(metric).where(metric.c.step == 5).values(bits=metric.c.bits + 1))

    monkeypatch.setattr(verbatim, "write", lossy)
    with pytest.raises(DatabaseError, match="the rows of metric that were written are not those that were read"):
        copy(address, other)
    with open_database(other, write=False) as new:
        assert not any(rows for name, rows in contents(new).items() if name != "identity")


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_a_copy_that_is_killed_is_none_and_is_begun_again(full: Database, address, other, share, in_processes):
    def copy_until():
        def progress(done: int, of: int) -> None:
            if done >= share * of:
                os.kill(os.getpid(), signal.SIGKILL)

        child = os.fork()
        if not child:
            copy(address, other, progress)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert in_processes(copy_until) == [str(-signal.SIGKILL)]
    with open_database(other, write=False) as new:
        assert not any(rows for name, rows in contents(new).items() if name != "identity")
    copy(address, other)
    with open_database(other, write=False) as new:
        assert contents(new) == contents(full)


CLAIM = """
import sys
from kdx.store import leases
from kdx.store.database import open_database
with open_database(sys.argv[1], write=True) as writer:
    print("open", flush=True)
    assert leases.claim(writer, 3, "another", 60)
"""


def test_others_write_the_source_meanwhile(full: Database, address, other):
    """Commits of others wait, and are no part of the copy."""
    before = contents(full)
    # A process of its own, since after a fork SQLite takes the locks of the other process for its own.
    with subprocess.Popen([sys.executable, "-c", CLAIM, address], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"open\n"
        copy(address, other)
        assert writer.wait(300) == 0
    with full.read() as connection:
        assert connection.scalar(select(run.c.owner).where(run.c.id == 3)) == "another"
    with open_database(other, write=False) as new:
        # Whichever of both came first: the copy is one state of the database.
        assert contents(new) in (before, contents(full))


def test_what_kdx_never_writes_is_named_and_not_copied(full: Database, backend, address, other):
    backend.execute(address, "UPDATE run SET seed = -5 WHERE id = 1")
    with pytest.raises(DatabaseError, match=r"run.seed is -5, which kdx never writes there") as caught:
        copy(address, other)
    assert caught.value.place == address
    with open_database(other, write=False) as new, new.read() as connection:
        assert connection.scalar(select(func.count()).select_from(run)) == 0
        assert connection.scalar(select(identity.c.id)) == new.id


def test_a_folder_is_no_target(full: Database, address, tmp_path: Path):
    with pytest.raises(DatabaseError, match="this is a folder, not a database"):
        copy(address, tmp_path)
