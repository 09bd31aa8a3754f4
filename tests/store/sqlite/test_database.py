"""What connections do to a file, and how long they wait for it."""

import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert
from stored import CELL, add_cell, cells, digest, pragma, refusal

from kdx.errors import DatabaseError
from kdx.store import database as opening
from kdx.store.database import Database, open_database
from kdx.store.refusals import DamagedDatabaseError
from kdx.store.schema import cell
from kdx.store.sqlite import database as module
from kdx.store.sqlite.file import APPLICATION_ID


def test_a_commit_is_on_the_disk_and_foreign_keys_hold(database: Database, figure):
    assert pragma(database, "journal_mode") == "truncate"
    assert pragma(database, "synchronous") == 2  # FULL
    assert pragma(database, "foreign_keys") == 1
    assert pragma(database, "busy_timeout") == 1_000  # of one slice; see below for how long it waits
    assert pragma(database, "application_id") == APPLICATION_ID
    figure(f"SQLite {sqlite3.sqlite_version}: journal mode {pragma(database, 'journal_mode')}")


def held(path: Path, statement: str = "BEGIN IMMEDIATE") -> subprocess.Popen[str]:
    """Another program, which has the database when this returns, and until its input is closed."""
    code = f"""
        import sqlite3, sys
        connection = sqlite3.connect({str(path)!r}, isolation_level=None)
        connection.execute({statement!r})
        connection.execute("SELECT * FROM cell").fetchall()
        print("mine", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None and program.stdout.readline() == "mine\n"
    return program


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "BEGIN"], ids=str.lower)
def test_who_writes_waits_longer_than_the_driver_for_writers_and_for_readers(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
):
    waits, patiently = [], module.Sqlite._patiently

    def counted(self: module.Sqlite, do: Callable[[], object]) -> object:
        def attempt() -> object:
            try:
                return do()
            except sqlite3.OperationalError:
                waits.append(do)
                if len(waits) == 3:
                    program.communicate()
                raise

        return patiently(self, attempt)

    monkeypatch.setattr(module, "SLICE", 0.05)
    monkeypatch.setattr(module.Sqlite, "_patiently", counted)
    with held(path, statement) as program:
        add_cell(database)
    assert len(waits) == 3
    assert cells(database) == [CELL]


def test_who_opens_to_write_is_reported_soon_of_a_lock(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch):
    assert opening.BUSY_SECONDS <= 30 <= 300 <= opening.PATIENT_SECONDS
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.2)
    with held(path):
        assert refusal(path, write=True).startswith(f"{path}: another process has kept the database locked for 0 s\n")


def test_a_wait_can_be_broken_off(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    with held(path), pytest.raises(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        add_cell(database)
    signal.signal(signal.SIGALRM, before)
    add_cell(database)
    assert cells(database) == [CELL]


def test_reading_changes_no_byte_and_makes_no_file(database: Database, path: Path):
    add_cell(database)
    database.close()
    path.with_name("runs.db-journal").unlink()
    before = digest(path), path.stat().st_mtime_ns
    with open_database(path, write=False) as reader:
        assert cells(reader) == [CELL]
        with pytest.raises(DatabaseError, match="no permission to write"), reader.read() as connection:
            connection.execute(insert(cell).values(id="d", spec="{}"))
    assert (digest(path), path.stat().st_mtime_ns) == before
    assert list(path.parent.iterdir()) == [path]


def test_who_reads_keeps_the_lock_while_another_thread_opens_the_same_file(database: Database, path: Path):
    """A page of `kdx serve`, while another is made."""
    add_cell(database)
    write = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('DELETE FROM cell').connection.commit()"
    with open_database(path, write=False) as reader, reader.read():
        assert cells(reader) == [CELL]
        open_database(path, write=False).close()
        other = subprocess.run([sys.executable, "-c", write], capture_output=True, text=True)
        assert "database is locked" in other.stderr


def test_a_read_only_file_in_a_read_only_folder_can_be_read(common_folder: Path, in_processes, figure):
    path = common_folder / "runs.db.example"
    with open_database(path, write=True, create=True) as database:
        add_cell(database)
    path.with_name("runs.db.example-journal").unlink()
    path.chmod(0o444)
    common_folder.chmod(0o555)

    def read() -> list[str]:
        with open_database(path, write=False) as database:
            return cells(database)

    (answer,) = in_processes(read, unprivileged=True)
    assert answer == str([CELL])
    figure(f"a stranger reads {answer}")


def killed_in_mid_write(path: Path, copy: Path) -> None:
    """A copy of the database and its journal, taken while a transaction had half of its pages on the disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO cell (id, spec) VALUES (?, ?)", [(f"{n:032x}", "x" * 2000) for n in range(50)]
        )
        connection.execute("UPDATE cell SET spec = 'half' || spec")
        shutil.copy(path, copy)
        shutil.copy(f"{path}-journal", f"{copy}-journal")
        connection.execute("COMMIT")


def test_a_reader_undoes_a_commit_that_wrote_its_first_page_alone(database: Database, path: Path, tmp_path: Path):
    """A commit writes the header, with the new number of pages, before the new pages."""
    add_cell(database)
    before, copy, page = path.read_bytes(), tmp_path / "copy.db", pragma(database, "page_size")
    killed_in_mid_write(path, copy)
    copy.write_bytes(path.read_bytes()[:page] + before[page:])
    with open_database(copy, write=False) as reader:
        assert cells(reader) == [CELL]
        assert pragma(reader, "integrity_check") == "ok"


def test_a_file_that_lost_its_end_is_damaged_and_no_other_file(database: Database, path: Path):
    path.write_bytes(path.read_bytes()[: -pragma(database, "page_size")])
    with pytest.raises(DamagedDatabaseError), open_database(path, write=False):
        pass


def test_a_reader_undoes_what_a_killed_writer_left(database: Database, path: Path, tmp_path: Path):
    add_cell(database)
    copy = tmp_path / "copy.db"
    killed_in_mid_write(path, copy)
    with open_database(copy, write=False) as reader:
        assert cells(reader) == [CELL]
        assert pragma(reader, "integrity_check") == "ok"


def test_what_a_killed_writer_left_is_reported_where_it_cannot_be_undone(
    database: Database, path: Path, common_folder: Path, in_processes
):
    add_cell(database)
    copy = common_folder / "copy.db"
    killed_in_mid_write(path, copy)
    copy.chmod(0o444)
    common_folder.chmod(0o555)
    before = digest(copy)
    assert in_processes(lambda: refusal(copy), unprivileged=True) == [
        f"{copy}: a writer was killed in mid-write, and undoing its half takes permission to write\n"
        "  hint: copy it together with copy.db-journal to a folder of yours"
    ]
    assert digest(copy) == before
