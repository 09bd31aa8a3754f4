import errno
import hashlib
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, insert, select

from kdx.errors import DatabaseError, KdxError, StorageError
from kdx.store import database as module
from kdx.store.database import DamagedDatabaseError, Database, open_database
from kdx.store.schema import cell
from kdx.store.version import APPLICATION_ID, REVISION

CELL = "c" * 32


def add_cell(database: Database, name: str = CELL, size: int = 2) -> None:
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
        assert cells(again) == [CELL]


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "why?.db", "a#b.db", "ü.db", "a%20b.db", "file:x.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str):
    with open_database(tmp_path / name, write=True, create=True) as database:
        add_cell(database)
    assert {file.name for file in tmp_path.iterdir()} == {name, f"{name}-journal"}
    with open_database(tmp_path / name, write=False) as database:
        assert cells(database) == [CELL]


def test_a_relative_path_survives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    database = open_database("runs.db", write=True, create=True)
    monkeypatch.chdir("/")
    add_cell(database)
    assert cells(database) == [CELL]


def test_a_commit_is_on_the_disk_and_foreign_keys_hold(database: Database, figure):
    assert pragma(database, "journal_mode") == "truncate"
    assert pragma(database, "synchronous") == 2  # FULL
    assert pragma(database, "foreign_keys") == 1
    assert pragma(database, "busy_timeout") == 1_000  # of one slice; see below for how long it waits
    assert pragma(database, "application_id") == APPLICATION_ID
    figure(f"SQLite {sqlite3.sqlite_version}: journal mode {pragma(database, 'journal_mode')}")


def test_opening_again_keeps_what_is_there(database: Database, path: Path):
    add_cell(database)
    with open_database(path, write=True, create=True) as again:
        assert cells(again) == [CELL]


def test_an_empty_file_becomes_a_database_when_one_is_to_be_made(path: Path):
    path.touch()
    with open_database(path, write=True, create=True) as database:
        assert cells(database) == []


def test_eight_processes_make_one_database_at_once(path: Path, in_processes):
    def make() -> int:
        with open_database(path, write=True, create=True) as database:
            add_cell(database, f"{os.getpid():032x}")
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
        import sys, kdx.store.database, kdx.store.leases, kdx.store.reading, kdx.store.recording, kdx.store.schema
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
        connection.execute(insert(cell).values(id=CELL, spec="{}"))
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


def test_questions_inside_a_transaction_are_asked_of_its_state(database: Database, path: Path):
    with open_database(path, write=False) as reader:
        with reader.read() as outer, reader.read() as inner:
            assert inner is outer
        with reader.read() as another:
            assert another is not outer
        with ThreadPoolExecutor(1) as pool, reader.read() as mine:

            def theirs() -> bool:
                with reader.read() as connection:
                    return connection is mine

            assert not pool.submit(theirs).result()


# Waiting


def held(path: Path, seconds: float, statement: str = "BEGIN IMMEDIATE") -> subprocess.Popen[str]:
    """Another program, which has the database for so long; it has it when this returns."""
    code = f"""
        import sqlite3, time
        connection = sqlite3.connect({str(path)!r}, isolation_level=None)
        connection.execute({statement!r})
        connection.execute("SELECT * FROM cell").fetchall()
        print("mine", flush=True)
        time.sleep({seconds})
    """
    program = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None and program.stdout.readline() == "mine\n"
    return program


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "BEGIN"], ids=str.lower)
def test_who_writes_waits_longer_than_the_driver_for_writers_and_for_readers(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
):
    monkeypatch.setattr(module, "_SLICE", 0.05)
    with held(path, 1.0, statement):
        start = time.monotonic()
        add_cell(database)
        waited = time.monotonic() - start
    assert 0.3 < waited < 20
    assert cells(database) == [CELL]


def test_who_opens_to_write_is_told_soon_of_a_lock(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch):
    assert module.BUSY_SECONDS <= 30 <= 300 <= module.PATIENT_SECONDS
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    with held(path, 60) as program:
        assert refusal(path, write=True).startswith(f"{path}: another process has kept the database locked for 0 s\n")
        program.kill()


def test_a_wait_can_be_broken_off(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    with held(path, 60) as program:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            add_cell(database)
        program.kill()
    signal.signal(signal.SIGALRM, before)
    add_cell(database)
    assert cells(database) == [CELL]


# Copying


def test_a_copy_is_the_database(database: Database, path: Path):
    add_cell(database)
    copy = path.with_name("copy of 100%.db")
    database.back_up(copy)
    with open_database(copy, write=True) as opened:
        assert cells(opened) == [CELL]
        assert pragma(opened, "application_id") == APPLICATION_ID
        add_cell(opened, "d" * 32)
    assert cells(database) == [CELL]
    assert {file.name for file in path.parent.iterdir()} == {
        path.name,
        copy.name,
        f"{path.name}-journal",
        f"{copy.name}-journal",
    }


def test_a_copy_taken_while_others_write_has_whole_transactions(database: Database, path: Path, in_processes):
    def write() -> int:
        with open_database(path, write=True) as mine:
            for number in range(15):
                with mine.write() as connection:
                    names = [{"id": f"{os.getpid():016x}{number:08x}{part:08x}", "spec": "x"} for part in range(10)]
                    connection.execute(insert(cell), names)
        return 0

    def copy() -> int:
        counts = []
        with open_database(path, write=False) as source:
            for number in range(15):
                target = path.with_name(f"{os.getpid()}-{number}.db")
                source.back_up(target)
                with open_database(target, write=False) as opened:
                    counts.append(len(cells(opened)))
                    assert pragma(opened, "integrity_check") == "ok"
        assert counts == sorted(counts) and not any(count % 10 for count in counts)
        return 0

    turn = multiprocessing.get_context("fork").Value("i", 0)

    def either() -> int:
        with turn.get_lock():
            turn.value += 1
            mine = turn.value
        return (write, copy, write)[mine - 1]()

    assert in_processes(either, 3) == ["0"] * 3
    assert len(cells(database)) == 300


def test_a_copy_overwrites_nothing(database: Database, path: Path):
    other = path.with_name("other.db")
    for target in (other, path):
        other.write_text("mine")
        before = digest(target)
        with pytest.raises(KdxError) as caught:
            database.back_up(target)
        assert (
            str(caught.value) == f"{target}: there is a file of this name\n  hint: name another; nothing is overwritten"
        )
        assert digest(target) == before


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 2500, "runs.db/copy.db"])
def test_a_copy_that_no_file_can_be_is_refused_before_it_is_made(
    database: Database, path: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "_copy", lambda *_: pytest.fail("it was made"))
    with pytest.raises(KdxError, match="nothing can have this name") as caught:
        database.back_up(path.parent / name)
    assert caught.value.exit_code == 2


def test_a_copy_gives_way_to_a_file_that_came_meanwhile(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
):
    target, copy = path.with_name("copy.db"), module._copy
    monkeypatch.setattr(module, "_copy", lambda *those: (copy(*those), target.write_text("mine")))
    with pytest.raises(KdxError, match="there is a file of this name"):
        database.back_up(target)
    assert target.read_text() == "mine"
    assert not list(path.parent.glob(".kdx-*"))


def test_a_copy_that_cannot_be_written_leaves_nothing(database: Database, path: Path, tmp_path: Path):
    for number in range(50):
        add_cell(database, f"{number:032x}", 20_000)
    code = f"""
        import resource, signal
        from pathlib import Path
        from kdx.errors import StorageError
        from kdx.store.database import open_database
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        with open_database({str(path)!r}, write=False) as database:
            try:
                database.back_up(Path({str(tmp_path / "copy.db")!r}))
            except StorageError as error:
                print(error)
    """
    told = subprocess.check_output([sys.executable, "-c", textwrap.dedent(code)], text=True)
    assert told.startswith(f"{tmp_path / 'copy.db'}: no copy of the database can be written: ")
    assert {file.name for file in tmp_path.iterdir()} == {path.name, f"{path.name}-journal"}
    with pytest.raises(StorageError, match="no copy of the database can be written: No such file or directory"):
        database.back_up(tmp_path / "absent" / "copy.db")


def test_of_a_damaged_database_no_copy_is_made(database: Database, path: Path):
    for number in range(50):
        add_cell(database, f"{number:032x}", 3000)
    content = bytearray(path.read_bytes())
    content[-40_000:] = b"\xff" * 40_000
    path.write_bytes(content)
    with pytest.raises(DamagedDatabaseError):
        database.back_up(path.with_name("copy.db"))
    assert not path.with_name("copy.db").exists()


# Migrating


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kdx with one more migration, which adds a table; the file of that migration."""
    scripts = tmp_path / "migrations"
    shutil.copytree(Path(module.__file__).parent / "migrations", scripts)
    last, following = module.REVISION, f"{int(module.REVISION) + 1:04d}"
    script = scripts / "versions" / f"{following}_notes.py"
    script.write_text(
        "import os, signal\n"
        "from alembic import op\n"
        f"revision, down_revision = {following!r}, {last!r}\n"
        "def upgrade():\n"
        "    op.execute('CREATE TABLE notes (note)')\n"
        "    op.execute('UPDATE cell SET spec = spec || spec')\n"
        "    if os.environ.get('KILLED'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    monkeypatch.setattr(module, "MIGRATIONS", str(scripts))
    monkeypatch.setattr(module, "REVISION", following)
    return script


def revision(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT version_num FROM kdx_alembic_version").fetchone()[0]


def test_a_copy_is_kept_before_a_migration(database: Database, path: Path, newer: Path):
    add_cell(database)
    old, new = newer_than(newer)
    with open_database(path, write=True) as upgraded:
        assert upgraded.backup == path.with_name(f"runs.db.before-{new}.bak")
        assert cells(upgraded) == [CELL]
    assert (revision(path), revision(upgraded.backup)) == (new, old)
    with open_database(path, write=True) as again:
        assert again.backup is None


def newer_than(script: Path) -> tuple[str, str]:
    """The revision before a migration, and its own."""
    return f"{int(script.name[:4]) - 1:04d}", script.name[:4]


def test_a_migration_that_was_killed_leaves_the_old_schema_and_a_copy(
    database: Database, path: Path, newer: Path, monkeypatch: pytest.MonkeyPatch, figure
):
    for number in range(50):
        add_cell(database, f"{number:032x}", 3000)
    old, new = newer_than(newer)
    monkeypatch.setenv("KILLED", "1")
    pid = os.fork()
    if pid == 0:
        # Few pages in memory, so that the half of it is in the file.
        event.listen(Engine, "begin", lambda connection: connection.exec_driver_sql("PRAGMA cache_size = 1"))
        open_database(path, write=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    first = path.with_name(f"runs.db.before-{new}.bak")
    before = digest(first)
    with closing(sqlite3.connect(path)) as connection:
        (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        assert integrity == "ok"
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'notes'").fetchall()
        assert connection.execute("SELECT max(length(spec)) FROM cell").fetchone() == (3000,)
    killed = revision(path)
    assert (killed, revision(first)) == (old, old)

    monkeypatch.delenv("KILLED")
    with open_database(path, write=True) as upgraded:
        assert upgraded.backup == path.with_name(f"runs.db.before-{new}-2.bak")
    assert revision(path) == new
    assert digest(first) == before
    figure(f"killed: schema {killed}, integrity {integrity}, a copy kept; then: schema {revision(path)}")


def test_without_room_for_a_copy_nothing_is_migrated(
    database: Database, path: Path, newer: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(source: sqlite3.Connection, target: Path) -> None:
        target.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "_copy", full)
    with pytest.raises(StorageError, match="no copy of the database can be written: No space left on device"):
        open_database(path, write=True)
    old, _ = newer_than(newer)
    assert revision(path) == old
    assert not list(path.parent.glob("*.bak")) + list(path.parent.glob(".tmp-*"))


# Network file systems


def test_a_network_file_system_is_refused_for_writing_alone(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "filesystem", lambda path: "nfs4")
    before = digest(path)
    told = (
        "it lies on a network file system (nfs4), whose locks cannot be trusted with a database\n"
        "  hint: name a file on a local disk with --db or KDX_DB, and copy it here with kdx db backup; "
        "KDX_ALLOW_NETWORK=1 if you know that the locks hold"
    )
    assert refusal(path, write=True) == f"{path}: {told}"
    fresh = path.with_name("fresh.db")
    assert refusal(fresh, write=True, create=True) == f"{fresh}: {told}"
    assert not fresh.exists() and digest(path) == before
    with open_database(path, write=False) as reader:
        reader.back_up(fresh)
    monkeypatch.setenv("KDX_ALLOW_NETWORK", "1")
    with open_database(path, write=True) as allowed:
        add_cell(allowed)


# Reading only


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

    (told,) = in_processes(read, unprivileged=True)
    assert told == str([CELL])
    figure(f"a stranger reads {told}")


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
        connection.execute("ROLLBACK")


def test_a_reader_undoes_what_a_killed_writer_left(database: Database, path: Path, tmp_path: Path):
    add_cell(database)
    copy = tmp_path / "copy.db"
    killed_in_mid_write(path, copy)
    with open_database(copy, write=False) as reader:
        assert cells(reader) == [CELL]
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
@pytest.mark.parametrize("content", [b"kernel: rbf\n" * 100, b"\x00" * 4096, b"short"], ids=["text", "zeros", "short"])
def test_a_file_of_another_kind_is_refused_untouched(path: Path, content: bytes, options: dict[str, bool], figure):
    path.write_bytes(content)
    before = digest(path)
    assert refusal(path, **options) == f"{path}: this file is not a database\n{NAME_ANOTHER}"
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
    figure(f"refused; SHA-256 {before[:8]} before, {digest(path)[:8]} after")


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
def test_a_database_of_another_application_is_refused_untouched(
    path: Path, made: str, options: dict[str, bool], figure
):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(made)
    before = digest(path)
    assert refusal(path, **options) == f"{path}: this database belongs to another application\n{NAME_ANOTHER}"
    assert digest(path) == before
    assert list(path.parent.iterdir()) == [path]
    figure(f"refused; SHA-256 {before[:8]} before, {digest(path)[:8]} after")


@pytest.mark.parametrize("options", [{"write": False}, {"write": True, "create": True}])
def test_a_newer_schema_is_refused_untouched(database: Database, path: Path, options: dict[str, bool], figure):
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE kdx_alembic_version SET version_num = '0099'")
    before = digest(path)
    assert refusal(path, **options) == (
        f"{path}: written by a newer kdx: its schema is 0099, this kdx knows {REVISION}; nothing was changed\n"
        "  hint: upgrade kdx"
    )
    assert digest(path) == before
    figure(f"refused; SHA-256 {before[:8]} before, {digest(path)[:8]} after")


def test_an_older_schema_is_not_brought_up_to_date_by_a_reader(database: Database, path: Path):
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE kdx_alembic_version SET version_num = '0000'")
    before = digest(path)
    assert refusal(path) == (
        f"{path}: written by an older kdx: its schema is 0000, this kdx reads {REVISION}\n"
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
def test_missing_permissions_are_told_at_once(common_folder, in_processes, mode, folder_mode, write, message, figure):
    path = common_folder / "runs.db"
    open_database(path, write=True, create=True).close()
    path.chmod(mode)
    common_folder.chmod(folder_mode)
    assert in_processes(lambda: refusal(path, write=write), unprivileged=True) == [f"{path}: {message}"]
    figure(f"file {mode:03o} in a folder {folder_mode:o}: exit {DatabaseError.exit_code}, with the remedy")


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
        (
            "postgresql://me:secret@host:port/runs",
            "postgresql://me:***@host:port/runs: this is not a database URL\n  allowed: a file, sqlite:///FILE",
        ),
        ("postgresql://[::1", "postgresql://[::1: this is not a database URL\n  allowed: a file, sqlite:///FILE"),
        (
            "sqlite://host/runs.db",
            "sqlite://host/runs.db: a database in a file has no host, user, driver or options\n"
            "  allowed: sqlite:///runs.db",
        ),
        (
            "sqlite:///runs.db?mode=ro",
            "sqlite:///runs.db?mode=ro: a database in a file has no host, user, driver or options\n"
            "  allowed: sqlite:///runs.db",
        ),
        ("sqlite:///%00", "no file is named 'sqlite:///%00'\n  allowed: a file, sqlite:///FILE"),
        ("a\0b", "no file is named 'a\\x00b'\n  allowed: a file, sqlite:///FILE"),
        ("", "no file is named ''\n  allowed: a file, sqlite:///FILE"),
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


def test_a_database_that_is_replaced_while_open_is_not_written(database: Database, path: Path, empty: Path, figure):
    path.rename(path.with_name("aside.db"))
    shutil.copy(empty, path)
    before = digest(path)
    with pytest.raises(DatabaseError) as caught:
        add_cell(database)
    assert str(caught.value) == f"{path}: {GONE}"
    assert digest(path) == before
    figure(f"exit {caught.value.exit_code}; SHA-256 of the other {before[:8]} before, {digest(path)[:8]} after")
    path.with_name("aside.db").replace(path)
    add_cell(database)
    assert cells(database) == [CELL]


def test_a_damaged_database_is_told(database: Database, path: Path):
    for number in range(50):
        add_cell(database, f"{number:032x}", 3000)
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
    add_cell(database, "b" * 32)
    pages = pragma(database, "page_count")

    @event.listens_for(database._engine, "begin")
    def limit(connection) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StorageError) as caught:
        add_cell(database, "a" * 32, 100_000)
    assert caught.value.exit_code == 74
    assert str(caught.value) == (
        f"{path}: the disk is full\n  hint: free some space, then kdx resume; what was recorded stands"
    )
    with open_database(path, write=True) as again:
        assert cells(again) == ["b" * 32]
        add_cell(again, "d" * 32, 100_000)
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
                        connection.execute(insert(cell).values(id=f"{{written:032x}}", spec="x" * 20_000))
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


def test_a_disk_that_is_really_full_is_told_and_what_was_recorded_stands(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no permission to mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        written = 0
        with open_database(disk / "runs.db", write=True, create=True) as database:
            with pytest.raises(StorageError) as caught:
                while True:
                    add_cell(database, f"{written:032x}", 10_000)
                    written += 1
            assert caught.value.exit_code == 74
            assert str(caught.value).startswith(f"{disk / 'runs.db'}: the disk is full\n")
            assert len(cells(database)) == written > 10
            assert pragma(database, "integrity_check") == "ok"
            with pytest.raises(StorageError, match="no copy of the database can be written"):
                database.back_up(disk / "copy.db")
            assert {file.name for file in disk.iterdir()} == {"runs.db", "runs.db-journal"}
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            add_cell(database, "d" * 32, 100_000)
            assert len(cells(database)) == written + 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_another_database_in_the_same_inode_is_not_written(database: Database, path: Path, tmp_path: Path, figure):
    """As `cp other.db runs.db` does it."""
    add_cell(database)
    with open_database(tmp_path / "other.db", write=True, create=True):
        pass
    path.write_bytes((tmp_path / "other.db").read_bytes())
    before = digest(path)
    with pytest.raises(DatabaseError, match="deleted or replaced while it was open"):
        add_cell(database, "d" * 32)
    with pytest.raises(DatabaseError, match="deleted or replaced while it was open"):
        cells(database)
    assert digest(path) == before
    figure("another database copied over one that is open: 0 bytes of it written")


def test_the_inode_of_an_open_database_goes_to_no_other_file(database: Database, path: Path, figure):
    add_cell(database)
    copy = path.read_bytes()
    inode, again = path.stat().st_ino, 0
    for _ in range(50):
        path.unlink()
        path.write_bytes(copy)  # of the same id
        again += path.stat().st_ino == inode
    assert again == 0
    with pytest.raises(DatabaseError, match="deleted or replaced while it was open"):
        add_cell(database, "d" * 32)
    figure(f"rm and cp of a copy, 50 times: the inode came back {again} times, nothing written")


def test_closing_one_hold_of_a_file_lets_go_of_no_lock_of_another(path: Path, empty: Path, in_processes):
    """To close any descriptor of a file would, by POSIX, if it were an ordinary one."""
    shutil.copy(empty, path)
    first, second = open_database(path, write=True), open_database(path, write=True)

    def locked() -> bool:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
        return False

    with first.write() as connection:
        connection.execute(insert(cell).values(id=CELL, spec="{}"))
        second.close()
        assert in_processes(locked) == ["True"]
    first.close()
    assert in_processes(locked) == ["False"]


def test_a_file_of_two_names_is_read_but_not_written(database: Database, path: Path, tmp_path: Path, figure):
    add_cell(database)
    (tmp_path / "other.db").hardlink_to(path)
    for name in ("runs.db", "other.db"):
        told = refusal(tmp_path / name, write=True)
        assert "the file has 2 names (hard links)" in told
        with open_database(tmp_path / name, write=False) as opened:
            assert cells(opened) == [CELL]
    with pytest.raises(DatabaseError, match="hard links"):
        add_cell(database, "d" * 32)
    (tmp_path / "other.db").unlink()
    add_cell(database, "d" * 32)
    figure("a hard link to a database: exit 3 for who writes, under either name")


def test_a_link_leads_to_the_same_database(database: Database, path: Path, tmp_path: Path):
    add_cell(database)
    (tmp_path / "link.db").symlink_to(path)
    with open_database(tmp_path / "link.db", write=True) as other:
        assert other.id == database.id
        add_cell(other, "d" * 32)
    assert len(cells(database)) == 2
