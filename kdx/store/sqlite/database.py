"""A results database in a file of SQLite."""

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from kdx.errors import KdxError, StorageError, did_you_mean, kind_of
from kdx.files import filling, fsync_directory, give_name
from kdx.store.backend import Database, Mode, Rows, driver_of, fetched
from kdx.store.refusals import gone, more_than_one, not_one_select, not_only_reading, not_understood
from kdx.store.sqlite import file
from kdx.store.sqlite.errors import OF_STATEMENT, translate
from kdx.store.sqlite.objects import TRIGGER, SqliteDialect, refuse_foreign_objects

SLICE = 1.0
"""Seconds that SQLite itself waits for a lock; Python handles signals, such as Ctrl-C, between two slices."""

CACHE = 1 << 16
"""KiB of pages that a connection for reading may keep. With SQLite's 2 MiB, a pass over 100,000 runs takes twice as
long, since it reads pages again and again."""

OTHERS_PATIENCE = 60.0
"""Seconds that a library with tables of its own waits while somebody else writes the database."""

SIGNAL_STEPS = 100_000
"""Steps of a user's query between two chances for Ctrl-C."""

_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}

_T = TypeVar("_T")


class Sqlite(Database):
    """A results database in a file, which stays open between transactions as long as it is the file at its path."""

    statements = (TRIGGER, f"PRAGMA application_id = {file.APPLICATION_ID}")
    dialect = SqliteDialect()
    insert = staticmethod(insert)
    recovery = file.RECOVERY

    def __init__(self, address: str | Path, *, write: bool = False) -> None:
        path = file.file_of(address)
        super().__init__(str(path), write=write)
        self.file: Path = path
        # The working directory or a link may change; the opened file does not.
        self._real = Path(os.path.realpath(path))

    def _make_engine(self) -> Engine:
        engine = create_engine("sqlite://", creator=self._connect, poolclass=QueuePool)

        @event.listens_for(engine, "connect")
        def connect(driver: sqlite3.Connection, entry: ConnectionPoolEntry) -> None:
            entry.info["file"] = self._file_at_path()

        @event.listens_for(engine, "checkout")
        def checkout(driver: sqlite3.Connection, entry: ConnectionPoolEntry, _: object) -> None:
            # Somebody may have moved the file away, or put another one in its place.
            if entry.info["file"] != self._file_at_path():
                raise DisconnectionError

        @event.listens_for(engine, "commit")
        def commit(connection: Connection) -> None:
            # A reader can block a commit; the transaction stays open and can be committed later. SQLAlchemy's own
            # commit, which comes after this one, finds nothing to do.
            driver = driver_of(connection)
            self._patiently(lambda: driver.execute("COMMIT"))

        return engine

    def _file_at_path(self) -> tuple[int, int] | None:
        """What tells the file at the path from every other; None if there is none."""
        try:
            status = Path(self._real).stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _connect(self) -> sqlite3.Connection:
        return self._patiently(self._connect_to_write if self.writable else self._connect_to_read)

    def _connect_to_write(self) -> sqlite3.Connection:
        """Open a connection whose commits survive a power cut."""
        connection = self._open("rw")
        try:
            # SQLite keeps these for each connection, not in the file.
            connection.execute("PRAGMA journal_mode = TRUNCATE")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_to_read(self) -> sqlite3.Connection:
        """Open a connection that cannot write; it has the views of this kdx, whichever kdx wrote the file."""
        connection = self._open("ro")
        try:
            self._undo_before(lambda: connection.execute(f"PRAGMA cache_size = -{CACHE}"))
            for name, statement in self.views.items():
                connection.execute(statement.replace(f"VIEW {name}", f"TEMP VIEW {name}", 1))
        except BaseException:
            connection.close()
            raise
        return connection

    def _undo_before(self, read: Callable[[], _T]) -> _T:
        """Call `read`, if need be after the half transaction of a writer that was killed during a commit is undone.

        Nobody can read before that. SQLite does it at the first read of a connection that may write.
        """
        try:
            return read()
        except sqlite3.OperationalError as error:
            undoable = os.access(self._real, os.W_OK) and os.access(self._real.parent, os.W_OK)
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK or not undoable:
                raise
        with closing(self._open("rw")) as other:
            other.execute("PRAGMA schema_version")
        return read()

    def _open(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(os.fsencode(self._real))}?mode={mode}",
            uri=True,
            timeout=min(SLICE, self.patience),
            # The pool hands it to one thread at a time.
            check_same_thread=False,
            # Else the driver would begin transactions itself, late and deferred.
            isolation_level=None,
        )

    def _patiently(self, do: Callable[[], _T]) -> _T:
        """Call `do` until no other process locks the database; after `patience` seconds its error is raised."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return do()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise

    def _begin(self, driver: sqlite3.Connection, mode: Mode) -> None:
        def lock() -> None:
            driver.execute("BEGIN" if mode is Mode.READ else "BEGIN IMMEDIATE")
            try:
                # A plain BEGIN locks nothing before the first read.
                driver.execute("SELECT 1 FROM sqlite_master").fetchone()
            except BaseException:
                driver.execute("ROLLBACK")
                raise

        self._undo_before(lambda: self._patiently(lock))
        if self.id is not None and driver.execute("SELECT id FROM identity").fetchone() != (self.id,):
            raise gone(self.name, file.PUT_BACK)

    def _translate(self, error: BaseException) -> KdxError | None:
        if not isinstance(error, sqlite3.Error):
            return None
        return translate(error, self.file, self._real, self.patience, was_open=self.id is not None)

    def _answer(self, driver: sqlite3.Connection, statement: str) -> Rows:
        driver.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
        # Python handles signals when it is called.
        driver.set_progress_handler(lambda: None, SIGNAL_STEPS)
        try:
            cursor = driver.execute(statement)
            if cursor.description is None:
                raise not_one_select()
            return fetched(cursor)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            driver.set_authorizer(None)
            _raise_for_user(error, driver)
        finally:
            driver.set_authorizer(None)
            driver.set_progress_handler(None, 0)

    def exists(self) -> bool:
        return self.file.exists()

    def prepare(self, *, write: bool, create: bool) -> None:
        file.prepare(self.file, write=write, create=create)

    def objects(self, connection: Connection) -> Collection[str]:
        return refuse_foreign_objects(driver_of(connection), self.file)

    def recorded_views(self, connection: Connection) -> Mapping[str, str]:
        rows = connection.exec_driver_sql("SELECT name, sql FROM main.sqlite_master WHERE type = 'view'")
        return dict(rows.all())

    def back_up(self, target: Path) -> None:
        taken = KdxError("there is a file of this name", place=str(target), hint="name another; nothing is overwritten")
        try:
            if os.path.lexists(target):
                raise taken
            with self.translate_errors(), filling(target.parent) as copy, closing(self._connect()) as source:
                self._begin(source, Mode.READ)
                try:
                    sound = _copy(source, copy)
                except sqlite3.Error as error:
                    raise _not_written(target, error) from error
                if not sound:
                    raise file.damaged(self.file)
                give_name(copy, target)
                fsync_directory(target.parent)
        except FileExistsError:
            raise taken from None
        except OSError as error:
            raise _not_written(target, error) from error

    def faults(self, connection: Connection, most: int) -> Iterator[str]:
        """Describe pages that contradict each other, values that a CHECK forbids, and references to missing rows."""
        # SQLite evaluates no CHECK in a connection that was opened to read.
        with closing(self._open("rw")) as driver:
            for (line,) in driver.execute(f"PRAGMA integrity_check({most})"):
                if line != "ok":
                    yield f"SQLite finds: {line}"
        lost = Counter((row[0], row[2]) for row in driver_of(connection).execute("PRAGMA foreign_key_check"))
        for (table, other), count in lost.items():
            yield f"{count} rows of {table} name a row of {other} that is not there"

    def software(self) -> tuple[str, str]:
        return "sqlite", sqlite3.sqlite_version

    def url(self) -> tuple[str, Mapping[str, Any]]:
        return f"sqlite:///{self.file}", {"connect_args": {"timeout": OTHERS_PATIENCE}}

    @staticmethod
    def field(column: str, path: str) -> str:
        return f"json_extract({column}, '$.{path}')"


def _copy(source: sqlite3.Connection, target: Path) -> bool:
    """Copy the state that the transaction of `source` sees to the disk, and return whether it is sound."""
    # No other process knows this file, and the copy may go to a network file system without locks.
    with closing(sqlite3.connect(f"file:{quote(os.fsencode(target))}?nolock=1", uri=True)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")
        source.backup(copy)
        sound = copy.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
    with target.open("rb") as written:
        os.fsync(written.fileno())
    return sound


def _not_written(target: Path, error: Exception) -> KdxError:
    reason, kind = (error.strerror, kind_of(error)) if isinstance(error, OSError) else (error, StorageError)
    return kind(
        f"no copy of the database can be written: {reason}",
        place=str(target),
        hint="make the folder first"
        if isinstance(error, FileNotFoundError)
        else "the database was not changed; free some space, or copy it to another disk with kdx db backup",
    )


def _raise_for_user(error: Exception, driver: sqlite3.Connection) -> NoReturn:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from error
    if "one statement at a time" in str(error):
        raise more_than_one() from error
    # A forbidden function, and a view that would be written, have the code of any error.
    if code == sqlite3.SQLITE_AUTH or str(error).startswith(("not authorized", "cannot modify")):
        raise not_only_reading() from error
    if code not in OF_STATEMENT:
        raise error
    hint = None
    what, _, name = str(error).rpartition(": ")
    if what == "no such table":
        tables = driver.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        hint = did_you_mean(name, [table for (table,) in tables])
    raise not_understood(str(error), hint) from error
