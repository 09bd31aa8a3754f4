"""Opening a results database, and its transactions.

Opening creates, migrates or refuses; it never touches a file of another application or of a newer kdx, and copies the
file before it migrates. Whatever goes wrong with the file is told as a `DatabaseError`, and a full or failing disk as a
`StorageError`, also from inside a transaction.

A transaction waits for those of others in slices, between which signals are heard: `BUSY_SECONDS` while opening, so
that somebody at a terminal soon knows, and `PATIENT_SECONDS` once a database is open to write, or while a worker opens
it, so that a program which keeps it locked for a while costs a sweep that while and no more.
"""

import itertools
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, event, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from kdx.errors import DatabaseError, KdxError, StorageError
from kdx.files import filling, give_name, is_free, not_a_file
from kdx.store.columns import UnexpectedValueError
from kdx.store.filesystem import NETWORK, filesystem
from kdx.store.foreign import refuse_foreign_journal, refuse_foreign_objects
from kdx.store.schema import identity
from kdx.store.version import APPLICATION_ID, REVISION, VERSION_TABLE, application_of

BUSY_SECONDS = 30
"""How long a transaction waits for those of other processes while a database is opened, or when it is only read."""

PATIENT_SECONDS = 600
"""How long one waits in a database that is open to write."""

ALLOW_NETWORK = "KDX_ALLOW_NETWORK"
"""Set in the environment, kdx writes a database on a network file system too: somebody knows that its locks hold."""

OTHER_DATABASE = "nothing was changed; name the results database with --db or KDX_DB"

MIGRATIONS = "kdx.store:migrations"
"""Where Alembic finds the scripts."""

_ADDRESSES = "a file, sqlite:///FILE"
_DRIVERS = ("sqlite", "sqlite+pysqlite")
_PASSWORD = re.compile(r"(://[^:/@]*:).*(?=@)")

_SLICE = 1.0  # seconds; between two of them, Ctrl-C is heard

_T = TypeVar("_T")


_NOT_OF_KDX = ("malformed JSON", "bad JSON path", "integer overflow", "string or blob too big", "Could not decode")
"""How SQLite begins to tell of a value that it cannot make sense of in a statement of kdx."""


class DamagedDatabaseError(DatabaseError):
    """The file is a database, yet its pages contradict each other."""


class Database:
    """An open results database; `open_database` makes one.

    Every transaction has a connection of its own, so threads may share a Database. Processes may not: open it anew
    after a fork, since SQLite forbids carrying a connection across.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path
        self.writable = write
        self.patience: float = BUSY_SECONDS
        """Seconds that a transaction waits for those of other processes."""
        self.backup: Path | None = None
        """The copy that opening made before it migrated."""
        self.id: str | None = None
        """Drawn when the database was made; None until it is known."""
        self._reading = threading.local()
        self._held: int | None = None
        self._checks_keys = True
        # The working directory may change, and a link may; the file that was opened does not.
        self._file = Path(os.path.realpath(path))
        self._engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool)
        self._writing = self._engine.execution_options(kdx_begin="BEGIN IMMEDIATE")

        @event.listens_for(self._engine, "begin")
        def begin(connection: Connection) -> None:
            statement = connection.get_execution_options().get("kdx_begin", "BEGIN")
            driver = driver_of(connection)
            self._patiently(lambda: _lock(driver, statement))
            self._refuse_another_database(driver)

        @event.listens_for(self._engine, "commit")
        def commit(connection: Connection) -> None:
            # A reader holds up a commit; the transaction stands, and can be committed later. SQLAlchemy's own commit,
            # which comes after this one, finds nothing to do.
            self._patiently(lambda: driver_of(connection).execute("COMMIT"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._engine.dispose()
        if self._held is not None:
            os.close(self._held)
            self._held = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One transaction that sees one state of the database. Keep it short: writers wait for it.

        Inside another one of the same thread it is that one, so that several questions can be asked of one state.
        """
        open_already: Connection | None = getattr(self._reading, "connection", None)
        if open_already is not None:
            yield open_already
            return
        with self.told(), self._engine.begin() as connection:
            self._reading.connection = connection
            try:
                yield connection
            finally:
                self._reading.connection = None

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction that holds the write lock from its start; committed at the end, rolled back on an exception.

        Raises:
            DatabaseError: the file cannot be written, is damaged, is no longer the one that was opened, or stayed
                locked all the while that `patience` gives.
            StorageError: the disk is full or failed; nothing of this transaction stands.
        """
        assert self.writable, "opened to read"
        with self.told(), self._writing.begin() as connection:
            yield connection

    def refuse_foreign(self) -> None:
        """Raises DatabaseError unless the file is empty or its header names kdx."""
        try:
            application = application_of(self._file)
        except ValueError as error:
            raise _no_database(self.path) from error
        except OSError as error:
            raise DatabaseError(f"this file cannot be read: {error.strerror}", place=str(self.path)) from error
        if application not in (None, APPLICATION_ID):
            raise _foreign(self.path)
        refuse_foreign_journal(self._file)

    def back_up(self, target: Path) -> None:
        """Copies one state of the database to a new file, which has its name only when it is whole.

        Others may read and write meanwhile; what they commit waits for the copy.

        Raises:
            KdxError: there is a file of that name, or none can have it.
            StorageError: it cannot be written.
            DamagedDatabaseError: the database is damaged, and so would be the copy.
        """
        there = KdxError("there is a file of this name", place=str(target), hint="name another; nothing is overwritten")
        try:
            if not is_free(target):
                raise there
            with (
                filling(target.parent) as copy,
                self.told(),
                closing(self._connect()) as source,
            ):
                self._patiently(lambda: _lock(source, "BEGIN"))
                try:
                    _copy(source, copy)
                except sqlite3.Error as error:
                    raise _no_backup(target, error) from error
                give_name(copy, target)
                _sync(target.parent)
        except FileExistsError:
            raise there from None
        except OSError as error:
            raise _no_backup(target, error) from error

    def _connect(self) -> sqlite3.Connection:
        return self._patiently(self._connect_to_write if self.writable else self._connect_to_read)

    def _connect_to_write(self) -> sqlite3.Connection:
        connection = self._driver("rw")
        try:
            self._refuse_another_file()
            # Per connection: SQLite does not keep these in the file.
            connection.execute("PRAGMA journal_mode = TRUNCATE")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA foreign_keys = {'ON' if self._checks_keys else 'OFF'}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _refuse_another_file(self) -> None:
        """Raises DatabaseError when the file of this name is no longer the one that was opened, or has other names."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            raise self._gone() from None
        if self._held is None:
            # Held, its inode goes to no other file. Not by an ordinary descriptor: to close that would let go of the
            # locks that SQLite has on the file [POSIX fcntl].
            self._held = os.open(self._file, os.O_PATH)
        held = os.fstat(self._held)
        if (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
            raise self._gone()
        if found.st_nlink > 1:
            raise DatabaseError(
                f"the file has {found.st_nlink} names (hard links); under another, SQLite would not find its journal",
                place=str(self.path),
                hint="make it a file of its own: cp it to another name, and move the copy here",
            )

    def _refuse_another_database(self, connection: sqlite3.Connection) -> None:
        """Raises DatabaseError when another database was put into the file that was opened."""
        if self.id is not None and connection.execute("SELECT id FROM identity").fetchone() != (self.id,):
            raise self._gone()

    def _gone(self) -> DatabaseError:
        if self._held is None:
            return _absent(self.path)
        return DatabaseError(
            "the database was deleted or replaced while it was open",
            place=str(self.path),
            hint="nothing was written to what is there now; put the right file back, then kdx resume",
        )

    def _patiently(self, do: Callable[[], _T]) -> _T:
        """What `do` gives, once nobody else keeps the database locked."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return do()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise

    def _connect_to_read(self) -> sqlite3.Connection:
        connection = self._driver("ro")
        try:
            connection.execute("PRAGMA schema_version")
        except sqlite3.OperationalError as error:
            connection.close()
            undoable = os.access(self._file, os.W_OK) and os.access(self._file.parent, os.W_OK)
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK or not undoable:
                raise
            # A writer was killed in mid-commit; nobody can read before its half transaction is undone, and SQLite
            # undoes it at the first look by somebody who may write.
            with closing(self._driver("rw")) as other:
                other.execute("PRAGMA schema_version")
            return self._driver("ro")
        except BaseException:
            connection.close()
            raise
        return connection

    def _driver(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(os.fsencode(self._file))}?mode={mode}",
            uri=True,
            timeout=min(_SLICE, self.patience),
            # The driver begins no transaction of its own accord; it would do so late, and deferred.
            isolation_level=None,
        )

    @contextmanager
    def told(self) -> Iterator[None]:
        """Tells what goes wrong with the file, or stands in it, as a `DatabaseError` or a `StorageError`."""
        try:
            yield
        except UnexpectedValueError as error:
            raise DatabaseError(
                f"{error.column} is {error.value}, which kdx never writes there",
                place=str(self.path),
                allowed=error.allowed,
                hint="somebody edited the database or made it up; kdx db check tells every such row",
            ) from error
        except (DBAPIError, sqlite3.Error) as error:
            told = self._tell(error.orig if isinstance(error, DBAPIError) else error)
            if told is None:
                raise
            raise told from error

    def _tell(self, error: BaseException | None) -> KdxError | None:
        code = getattr(error, "sqlite_errorcode", None)
        place = str(self.path)
        match code and code & 0xFF:  # the low byte is the kind, the rest its detail
            case sqlite3.SQLITE_FULL:
                return StorageError(
                    "the disk is full", place=place, hint="free some space, then kdx resume; what was recorded stands"
                )
            case sqlite3.SQLITE_IOERR:
                return StorageError(
                    f"the disk failed ({getattr(error, 'sqlite_errorname', error)})",
                    place=place,
                    hint="look after the disk, then kdx resume; what was recorded stands",
                )
            case sqlite3.SQLITE_NOTADB:
                return _no_database(self.path)
            case sqlite3.SQLITE_CORRUPT:
                return _damaged(self.path)
            case sqlite3.SQLITE_BUSY:
                return DatabaseError(
                    f"another process has kept the database locked for {self.patience:.0f} s",
                    place=place,
                    hint="end the program that holds it, then try again",
                )
            case sqlite3.SQLITE_READONLY if code == sqlite3.SQLITE_READONLY_ROLLBACK:
                return DatabaseError(
                    "a writer was killed in mid-write, and undoing its half takes permission to write",
                    place=place,
                    hint=f"copy it together with {self.path.name}-journal to a folder of yours",
                )
            case sqlite3.SQLITE_READONLY:
                return _not_writable(self.path)
            case sqlite3.SQLITE_CANTOPEN:
                if not os.access(self._file, os.F_OK):
                    return self._gone()
                left = os.statvfs(self._file.parent)
                if left.f_files and not left.f_favail:  # where there is no fixed number of them, both are 0
                    return StorageError(
                        "the disk has no inode left for the journal",
                        place=place,
                        hint="remove some files (df -i tells), then kdx resume; what was recorded stands",
                    )
                return DatabaseError("the database cannot be opened", place=place, hint="look at its permissions")
            case sqlite3.SQLITE_CONSTRAINT if code != sqlite3.SQLITE_CONSTRAINT_TRIGGER:
                return DatabaseError(
                    f"its rows contradict each other: {error}",
                    place=place,
                    hint="somebody edited the database or made it up; kdx db check looks it through",
                )
            case _ if str(error).startswith(_NOT_OF_KDX):
                return DatabaseError(
                    f"it holds what kdx never writes: {error}",
                    place=place,
                    hint="somebody edited the database or made it up; kdx db check tells every such row",
                )
            case _:
                return None


def open_database(url_or_path: str | Path, *, write: bool, create: bool = False, patient: bool = False) -> Database:
    """Opens a results database, bringing it up to the newest schema where it is opened to write.

    An older one is copied first, to a file beside it that is named by the new schema, such as
    `runs.db.before-0002.bak`.

    Args:
        url_or_path: a file, or an SQLAlchemy URL such as `sqlite:///runs.db`.
        write: without it the file is opened read-only, and neither it nor its folder is written, but for one thing:
            the half transaction of a killed writer is undone, where that is permitted.
        create: make the database where there is none.
        patient: nobody sits waiting, so opening too waits `PATIENT_SECONDS` for others.

    Raises:
        DatabaseError: absent, unreadable, not a database, of another application, of a schema that does not fit, or,
            when it is to be written, not writable, locked by another process, or on a network file system. Nothing was
            changed.
        StorageError: the disk is full or failed.
    """
    assert write or not create
    path = path_of(url_or_path)
    there = True
    try:
        what = not_a_file(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        there, what = False, None
    except OSError as error:
        raise DatabaseError(f"this file cannot be reached: {error.strerror}", place=str(path)) from error
    if what:
        # A named pipe would be waited for, and a device written to.
        raise DatabaseError(f"this is {what}, not a database", place=str(path), hint=OTHER_DATABASE)
    if there:
        if not os.access(path, os.R_OK):
            raise DatabaseError("no permission to read this file", place=str(path), hint="look at its owner and mode")
        if write and not os.access(path, os.W_OK):
            raise _not_writable(path)
    elif not create:
        raise _absent(path)
    elif not path.parent.is_dir():
        raise DatabaseError(f"there is no folder {path.parent}", place=str(path), hint="make it first")
    if write and not os.access(path.parent, os.W_OK):
        raise DatabaseError(
            "no permission to write its folder, where SQLite keeps a journal while it writes",
            place=str(path),
            hint="copy the database to a folder of yours, or name another with --db or KDX_DB",
        )
    if write and (kind := filesystem(path)) in NETWORK and not os.environ.get(ALLOW_NETWORK):
        raise DatabaseError(
            f"it lies on a network file system ({kind}), whose locks cannot be trusted with a database",
            place=str(path),
            hint=f"name a file on a local disk with --db or KDX_DB, and copy it here with kdx db backup; "
            f"{ALLOW_NETWORK}=1 if you know that the locks hold",
        )
    if not there:
        try:
            path.touch()
        except OSError as error:
            raise StorageError(f"this file cannot be made: {error.strerror}", place=str(path)) from error
    patience = PATIENT_SECONDS if patient else BUSY_SECONDS
    with Database(path, write=False) as before:
        before.patience = patience
        # Looks before anything is written: opening to write may already change the journal mode of a foreign file, and
        # opening at all may play back its journal.
        before.refuse_foreign()
        with before.read() as connection:
            revision = _revision(connection, path)
    if revision is None and not create:
        raise DatabaseError("this file is empty, not a results database", place=str(path), hint=OTHER_DATABASE)
    if revision != REVISION and not write:
        raise DatabaseError(
            f"written by an older kdx: its schema is {revision}, this kdx reads {REVISION}",
            place=str(path),
            hint="kdx db upgrade brings it up to date, and keeps a copy",
        )
    database = Database(path, write=write)
    database.patience = patience
    try:
        if revision != REVISION:
            _migrate(database)
        with database.write() if write else database.read() as connection:
            refuse_foreign_objects(driver_of(connection), path)
            database.id = connection.scalar(select(identity.c.id))
            if database.id is None:
                raise _foreign(path)
            if write:
                # Who keeps it locked is told now; from here on there is time.
                database.patience = PATIENT_SECONDS
    except BaseException:
        database.close()
        raise
    return database


def id_of(path: Path) -> str | None:
    """The id of a database that somebody may be writing just now; None where none can be read there.

    Takes no lock, and touches nothing.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1", uri=True)) as connection:
            found = connection.execute("SELECT id FROM identity").fetchone()
    except sqlite3.Error:
        return None
    return found[0] if found and isinstance(found[0], str) else None


def path_of(url_or_path: str | Path) -> Path:
    """The file of a database.

    Raises:
        DatabaseError: it is a URL of something else, or one that no file can have.
    """
    if not str(url_or_path) or "\0" in str(url_or_path):
        raise _nameless(url_or_path)
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return Path(url_or_path)
    # By hand, since what is no URL may have one too.
    place = _PASSWORD.sub(r"\1***", url_or_path)
    try:
        url = make_url(url_or_path)
    except (ArgumentError, ValueError):  # a ValueError is a port that is no number, or a bracket that is not closed
        raise DatabaseError("this is not a database URL", place=place, allowed=_ADDRESSES) from None
    if url.get_backend_name() != "sqlite":
        raise DatabaseError(f"kdx does not open {url.get_backend_name()}", place=place, allowed=_ADDRESSES)
    if url.database in (None, "", ":memory:"):
        raise DatabaseError("several processes write it, so it must be a file", place=place, allowed="sqlite:///FILE")
    if url.host or url.port is not None or url.username or url.query or url.drivername not in _DRIVERS:
        problem = "a database in a file has no host, user, driver or options"
        raise DatabaseError(problem, place=place, allowed=f"sqlite:///{url.database}")
    if "\0" in str(url.database):  # written as %00
        raise _nameless(url_or_path)
    return Path(str(url.database))


def _revision(connection: Connection, path: Path) -> str | None:
    """The schema that the file has; None: it is empty.

    Raises:
        DatabaseError: it has no tables of kdx, or those of a newer one.
    """
    tables = connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars().all()
    if not tables:
        return None
    if VERSION_TABLE not in tables:
        raise _foreign(path)
    found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalars().all()
    if len(found) != 1 or not re.fullmatch(r"\d{4}", str(found[0]), re.ASCII):
        raise _foreign(path)
    revision = str(found[0])
    if revision > REVISION:
        raise DatabaseError(
            f"written by a newer kdx: its schema is {revision}, this kdx knows {REVISION}; nothing was changed",
            place=str(path),
            hint="upgrade kdx",
        )
    return revision


def _migrate(database: Database) -> None:
    # Imported here: Alembic costs 0.2 s and is seldom needed.
    from alembic import command
    from alembic.config import Config

    # A table that others refer to is made anew; the references are by name and hold again at the end.
    database._checks_keys = False
    try:
        with database.write() as connection:
            # Asked again under the lock, for another process may have come first.
            revision = _revision(connection, database.path)
            if revision == REVISION:
                return
            if revision is not None:
                database.backup = _unused_name(database.path)
                database.back_up(database.backup)
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            config = Config()
            config.set_main_option("script_location", MIGRATIONS)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except BaseException:
        # Nothing was changed, so the copy is of no use.
        if database.backup is not None:
            with suppress(OSError):
                database.backup.unlink()
        raise
    finally:
        database._checks_keys = True


def _unused_name(path: Path) -> Path:
    """Of a copy to be made before a migration; an earlier one, of a migration that was cut short, stays."""
    numbers = itertools.chain([""], map("-{}".format, itertools.count(2)))
    names = (path.with_name(f"{path.name}.before-{REVISION}{number}.bak") for number in numbers)
    return next(name for name in names if not name.exists())


def _lock(connection: sqlite3.Connection, begin: str) -> None:
    """Begins a transaction that will not have to wait again before its commit."""
    connection.execute(begin)
    try:
        # A plain BEGIN locks nothing before the first look.
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _copy(source: sqlite3.Connection, target: Path) -> None:
    """Copies what the transaction of `source` sees, and forces it to disk."""
    # Nobody else knows this file, and a network file system, where a copy may well go, might have no locks.
    with closing(sqlite3.connect(f"file:{quote(os.fsencode(target))}?nolock=1", uri=True)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")
        source.backup(copy)
        if copy.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise _damaged(target)
    _sync(target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def driver_of(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _no_backup(target: Path, error: Exception) -> StorageError:
    reason = error.strerror if isinstance(error, OSError) else error
    return StorageError(
        f"no copy of the database can be written: {reason}",
        place=str(target),
        hint="the database was not changed; free some space, or copy it to another disk with kdx db backup",
    )


def _damaged(path: Path) -> DamagedDatabaseError:
    return DamagedDatabaseError(
        "the database is damaged",
        place=str(path),
        hint="take it back from a copy, or save what is left with: sqlite3 FILE .recover",
    )


def _no_database(path: Path) -> DatabaseError:
    return DatabaseError("this file is not a database", place=str(path), hint=OTHER_DATABASE)


def _foreign(path: Path) -> DatabaseError:
    return DatabaseError("this database belongs to another application", place=str(path), hint=OTHER_DATABASE)


def _nameless(address: str | Path) -> DatabaseError:
    return DatabaseError(f"no file is named {str(address)!r}", allowed=_ADDRESSES)


def _absent(path: Path) -> DatabaseError:
    return DatabaseError(
        "there is no results database here",
        place=str(path),
        hint="kdx sweep makes one; name another with --db or KDX_DB",
    )


def _not_writable(path: Path) -> DatabaseError:
    return DatabaseError(
        "no permission to write this file",
        place=str(path),
        hint="copy it to a file of yours, or name another with --db or KDX_DB",
    )
