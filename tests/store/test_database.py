import errno
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event, insert, select

from kdx.errors import DatabaseError, StorageError
from kdx.store import database as module
from kdx.store.database import Database, open_database
from kdx.store.schema import APPLICATION_ID, cell


def add_cell(database: Database, name: str = "c", size: int = 2) -> None:
    with database.write() as connection:
        connection.execute(insert(cell).values(id=name, spec="x" * size))


def cells(database: Database) -> list[str]:
    with database.read() as connection:
        return list(connection.scalars(select(cell.c.id).order_by(cell.c.id)))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refusal(path: str | Path, **options: bool) -> str:
    with pytest.raises(DatabaseError) as caught:
        open_database(path, **{"write": False, **options})
    assert caught.value.exit_code == 3
    return str(caught.value)


def pragma(database: Database, name: str) -> object:
    with database.read() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()


# Opening


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}", "sqlite+pysqlite:///{}"])
def test_a_path_and_a_url_open_the_same_file(database: Database, path: Path, form: str):
    add_cell(database)
    with open_database(form.format(path), write=False) as again:
        assert cells(again) == ["c"]


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "why?.db", "a#b.db", "ü.db", "a%20b.db", "file:x.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str):
    with open_database(tmp_path / name, write=True, create=True) as database:
        add_cell(database)
    assert {file.name for file in tmp_path.iterdir()} == {name, f"{name}-journal"}
    with open_database(tmp_path / name, write=False) as database:
        assert cells(database) == ["c"]


def test_a_relative_path_survives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    database = open_database("runs.db", write=True, create=True)
    monkeypatch.chdir("/")
    add_cell(database)
    assert cells(database) == ["c"]


def test_a_commit_is_on_the_disk_and_foreign_keys_hold(database: Database):
    assert pragma(database, "journal_mode") == "truncate"
    assert pragma(database, "synchronous") == 2  # FULL
    assert pragma(database, "foreign_keys") == 1
    assert pragma(database, "busy_timeout") == 1_000  # of one slice; see below for how long it waits
    assert pragma(database, "application_id") == APPLICATION_ID


def test_opening_again_keeps_what_is_there(database: Database, path: Path):
    add_cell(database)
    with open_database(path, write=True, create=True) as again:
        assert cells(again) == ["c"]


def test_an_empty_file_becomes_a_database_when_one_is_to_be_made(path: Path):
    path.touch()
    with open_database(path, write=True, create=True) as database:
        assert cells(database) == []


def test_eight_processes_make_one_database_at_once(path: Path, in_processes):
    def make() -> int:
        with open_database(path, write=True, create=True) as database:
            add_cell(database, str(os.getpid()))
        return 0

    assert in_processes(make, 8) == ["0"] * 8
    with open_database(path, write=False) as database:
        assert len(cells(database)) == 8


def test_a_failed_creation_leaves_a_file_that_can_become_a_database(path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(config: object, revision: str) -> None:
        config.attributes["connection"].exec_driver_sql("CREATE TABLE half (x)")
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("alembic.command.upgrade", fail)
        with pytest.raises(RuntimeError):
            open_database(path, write=True, create=True)
    with open_database(path, write=True, create=True) as database:
        assert cells(database) == []
        with database.read() as connection:
            assert not connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'half'").all()


def test_importing_the_store_loads_neither_torch_nor_alembic():
    code = """
        import sys, kdx.store.database, kdx.store.reader, kdx.store.writer, kdx.store.schema
        print(sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "alembic", "optuna", "lightning"}))
    """
    assert subprocess.check_output([sys.executable, "-c", textwrap.dedent(code)], text=True) == "[]\n"


def test_opening_a_database_of_this_schema_does_not_load_alembic(database: Database, path: Path):
    code = f"""
        import sys
        from kdx.store.database import open_database
        open_database({str(path)!r}, write=True, create=True), open_database({str(path)!r}, write=False)
        print("alembic" in sys.modules)
    """
    assert subprocess.check_output([sys.executable, "-c", textwrap.dedent(code)], text=True) == "False\n"


# Transactions


def test_an_exception_takes_the_transaction_back(database: Database):
    with pytest.raises(RuntimeError), database.write() as connection:
        connection.execute(insert(cell).values(id="c", spec="{}"))
        raise RuntimeError
    assert cells(database) == []


def test_a_write_transaction_locks_from_its_start(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PATIENT_SECONDS", 0)
    with open_database(path, write=True) as other, database.write():
        assert cells(other) == []
        with pytest.raises(DatabaseError) as caught, other.write():
            pass
    assert str(caught.value) == (
        f"{path}: another process has kept the database locked for 0 s\n"
        "  hint: end the program that holds it, then try again"
    )


def test_a_reader_sees_one_state(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch):
    database.patience = 0
    with open_database(path, write=False) as reader, reader.read() as connection:
        assert connection.execute(select(cell)).all() == []
        with pytest.raises(DatabaseError, match="locked"):
            add_cell(database)
        assert connection.execute(select(cell)).all() == []
    add_cell(database)


# Reading only


def test_reading_changes_no_byte_and_makes_no_file(database: Database, path: Path):
    add_cell(database)
    database.close()
    path.with_name("runs.db-journal").unlink()
    before = digest(path), path.stat().st_mtime_ns
    with open_database(path, write=False) as reader:
        assert cells(reader) == ["c"]
        with pytest.raises(DatabaseError, match="no permission to write"), reader.read() as connection:
            connection.execute(insert(cell).values(id="d", spec="{}"))
    assert (digest(path), path.stat().st_mtime_ns) == before
    assert list(path.parent.iterdir()) == [path]


def test_a_read_only_file_in_a_read_only_folder_can_be_read(common_folder: Path, in_processes):
    path = common_folder / "runs.db.example"
    with open_database(path, write=True, create=True) as database:
        add_cell(database)
    path.with_name("runs.db.example-journal").unlink()
    path.chmod(0o444)
    common_folder.chmod(0o555)

    def read() -> list[str]:
        with open_database(path, write=False) as database:
            return cells(database)

    assert in_processes(read, unprivileged=True) == ["['c']"]


def killed_in_mid_write(path: Path, copy: Path) -> None:
    """A copy of the database and its journal, taken while a transaction had half of its pages on the disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO cell VALUES (?, ?)", [(f"half {n}", "x" * 2000) for n in range(50)])
        connection.execute("UPDATE cell SET spec = 'half' || spec")
        shutil.copy(path, copy)
        shutil.copy(f"{path}-journal", f"{copy}-journal")
        connection.execute("ROLLBACK")


def test_a_reader_undoes_what_a_killed_writer_left(database: Database, path: Path, tmp_path: Path):
    add_cell(database)
    copy = tmp_path / "copy.db"
    killed_in_mid_write(path, copy)
    with open_database(copy, write=False) as reader:
        assert cells(reader) == ["c"]
        assert pragma(reader, "integrity_check") == "ok"


def test_what_a_killed_writer_left_is_told_where_it_cannot_be_undone(
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


# Refusals, each in full; nothing is changed by any

NAME_ANOTHER = "  hint: nothing was changed; name the results database with --db or KDX_DB"


@pytest.mark.parametrize("write", [False, True])
def test_an_absent_database_is_not_made_unasked(path: Path, write: bool):
    assert refusal(path, write=write) == (
        f"{path}: there is no results database here\n  hint: kdx sweep makes one; name another with --db or KDX_DB"
    )
    assert list(path.parent.iterdir()) == []


def test_the_folder_of_a_new_database_must_be_there(tmp_path: Path):
    path = tmp_path / "results" / "runs.db"
    message = refusal(path, write=True, create=True)
    assert message == f"{path}: there is no folder {path.parent}\n  hint: make it first"


def test_a_file_that_cannot_be_reached_is_told(tmp_path: Path):
    path = tmp_path / ("n" * 300)
    assert refusal(path, write=True, create=True) == f"{path}: this file cannot be reached: File name too long"


def test_a_file_that_the_disk_cannot_hold_is_told(path: Path, monkeypatch: pytest.MonkeyPatch):
    def touch(self: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "touch", touch)
    with pytest.raises(StorageError) as caught:
        open_database(path, write=True, create=True)
    assert str(caught.value) == f"{path}: this file cannot be made: No space left on device"


def test_a_folder_is_no_database(tmp_path: Path):
    assert refusal(tmp_path) == f"{tmp_path}: this is a folder, not a database\n{NAME_ANOTHER}"


@pytest.mark.parametrize("options", [{"write": False}, {"write": True}, {"write": True, "create": True}])
@pytest.mark.parametrize("content", [b"kernel: rbf\n" * 100, b"\x00" * 4096, b"short"])
def test_a_file_of_another_kind_is_refused_untouched(path: Path, content: bytes, options: dict[str, bool]):
    path.write_bytes(content)
    assert refusal(path, **options) == f"{path}: this file is not a database\n{NAME_ANOTHER}"
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_an_empty_file_is_no_database_unless_one_is_to_be_made(path: Path):
    path.touch()
    assert refusal(path, write=True) == f"{path}: this file is empty, not a results database\n{NAME_ANOTHER}"


@pytest.mark.parametrize("options", [{"write": False}, {"write": True, "create": True}])
@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE studies (x); PRAGMA journal_mode = WAL",
        "CREATE TABLE run (x)",
        "PRAGMA application_id = 1196444487; CREATE TABLE kdx_alembic_version (version_num)",
        f"PRAGMA application_id = {APPLICATION_ID}; CREATE TABLE notes (x)",
        "PRAGMA application_id = 1196444487",
    ],
)
def test_a_database_of_another_application_is_refused_untouched(path: Path, made: str, options: dict[str, bool]):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(made)
    before = digest(path)
    assert refusal(path, **options) == f"{path}: this database belongs to another application\n{NAME_ANOTHER}"
    assert digest(path) == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("options", [{"write": False}, {"write": True, "create": True}])
def test_a_newer_schema_is_refused_untouched(database: Database, path: Path, options: dict[str, bool]):
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE kdx_alembic_version SET version_num = '0099'")
    before = digest(path)
    assert refusal(path, **options) == (
        f"{path}: written by a newer kdx: its schema is 0099, this kdx knows 0001; nothing was changed\n"
        "  hint: upgrade kdx"
    )
    assert digest(path) == before


def test_an_older_schema_is_not_brought_up_to_date_by_a_reader(database: Database, path: Path):
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE kdx_alembic_version SET version_num = '0000'")
    before = digest(path)
    assert refusal(path) == (
        f"{path}: written by an older kdx: its schema is 0000, this kdx reads 0001\n"
        "  hint: kdx db upgrade brings it up to date, and keeps a copy"
    )
    assert digest(path) == before


@pytest.mark.parametrize(
    ("mode", "folder_mode", "write", "message"),
    [
        (0o000, 0o777, False, "no permission to read this file\n  hint: look at its owner and mode"),
        (
            0o444,
            0o777,
            True,
            "no permission to write this file\n  hint: copy it to a file of yours, or name another with --db or KDX_DB",
        ),
        (
            0o666,
            0o555,
            True,
            "no permission to write its folder, where SQLite keeps a journal while it writes\n"
            "  hint: copy the database to a folder of yours, or name another with --db or KDX_DB",
        ),
    ],
)
def test_missing_permissions_are_told_at_once(common_folder, in_processes, mode, folder_mode, write, message):
    path = common_folder / "runs.db"
    open_database(path, write=True, create=True).close()
    path.chmod(mode)
    common_folder.chmod(folder_mode)
    assert in_processes(lambda: refusal(path, write=write), unprivileged=True) == [f"{path}: {message}"]


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
            "mysql://me:***@host/runs: kdx does not open mysql\n  allowed: a file, sqlite:///FILE",
        ),
        ("://runs.db", "://runs.db: this is not a database URL\n  allowed: a file, sqlite:///FILE"),
    ],
)
def test_a_url_that_cannot_be_opened_is_told(url: str, message: str):
    assert refusal(url) == message


# Faults while it is open


def test_a_database_that_is_deleted_while_open_is_not_made_anew(database: Database, path: Path):
    add_cell(database)
    path.unlink()
    with pytest.raises(DatabaseError) as caught:
        add_cell(database)
    assert str(caught.value) == f"{path}: {GONE}"
    assert not path.exists()


GONE = (
    "the database was deleted or replaced while it was open\n"
    "  hint: nothing was written to what is there now; put the right file back, then kdx resume"
)


def test_a_database_that_is_replaced_while_open_is_not_written(database: Database, path: Path, empty: Path):
    path.rename(path.with_name("aside.db"))
    shutil.copy(empty, path)
    before = digest(path)
    with pytest.raises(DatabaseError) as caught:
        add_cell(database)
    assert str(caught.value) == f"{path}: {GONE}"
    assert digest(path) == before
    path.with_name("aside.db").replace(path)
    add_cell(database)
    assert cells(database) == ["c"]


def test_a_damaged_database_is_told(database: Database, path: Path):
    for number in range(50):
        add_cell(database, f"c{number}", 3000)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(DatabaseError) as caught:
        cells(database)
    assert str(caught.value) == (
        f"{path}: the database is damaged\n"
        "  hint: take it back from a copy, or save what is left with: sqlite3 FILE .recover"
    )


def test_a_full_disk_is_told_and_what_was_recorded_stands(database: Database, path: Path):
    add_cell(database, "before")
    pages = pragma(database, "page_count")

    @event.listens_for(database._engine, "begin")
    def limit(connection) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StorageError) as caught:
        add_cell(database, "after", 100_000)
    assert caught.value.exit_code == 74
    assert str(caught.value) == (
        f"{path}: the disk is full\n  hint: free some space, then kdx resume; what was recorded stands"
    )
    with open_database(path, write=True) as again:
        assert cells(again) == ["before"]
        add_cell(again, "when there is space", 100_000)
        assert pragma(again, "integrity_check") == "ok"


def test_a_failing_disk_is_told_and_what_was_recorded_stands(database: Database, path: Path):
    code = f"""
        import resource, signal, sys
        from sqlalchemy import insert
        from kdx.errors import StorageError
        from kdx.store.database import open_database
        from kdx.store.schema import cell

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        written = 0
        try:
            with open_database({str(path)!r}, write=True) as database:
                while True:
                    with database.write() as connection:
                        connection.execute(insert(cell).values(id=str(written), spec="x" * 20_000))
                    written += 1
        except StorageError as error:
            print(written, error.exit_code, error, sep="\\n")
    """
    told = subprocess.check_output([sys.executable, "-c", textwrap.dedent(code)], text=True)
    written, exit_code, message = told.split("\n", 2)
    assert int(written) > 1
    assert exit_code == "74"
    assert message == (
        f"{path}: the disk failed (SQLITE_IOERR_WRITE)\n"
        "  hint: look after the disk, then kdx resume; what was recorded stands\n"
    )
    assert len(cells(database)) == int(written)
    assert pragma(database, "integrity_check") == "ok"
