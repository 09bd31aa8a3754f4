"""Implements `kdx.store.backend.Backend` for SQLite."""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kdx.errors import DatabaseError, KdxError
from kdx.store.backend import Software
from kdx.store.place_of_files import named_folder, place_in
from kdx.store.rows import Rows, kept
from kdx.store.sqlite import backup, check, errors, file
from kdx.store.sqlite.address import file_of
from kdx.store.sqlite.connecting import connect_to_read, connect_to_write, lock, patiently
from kdx.store.sqlite.foreign import refuse_foreign_objects
from kdx.store.sqlite.header import APPLICATION_ID
from kdx.store.sqlite.query import any_text, query
from kdx.store.sqlite.views import TRIGGER, VIEW_STATEMENTS

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table


OTHERS_PATIENCE = 60.0
"""Seconds that a library with tables of its own waits while somebody else writes the database."""


class Sqlite:
    """A results database in a file. Each transaction has a connection of its own."""

    recovery = file.RECOVERY
    keeps_copies = True
    views: Mapping[str, str] = VIEW_STATEMENTS
    trigger = TRIGGER

    def __init__(self, address: str | Path, *, write: bool) -> None:
        self.file: Path = file_of(address)
        self.name = str(self.file)
        self.writable = write
        self.patience = 0.0
        self.reconnects = False
        self.id: str | None = None
        self._held = file.HeldFile(self.file)
        self._check_references = True

    @property
    def location(self) -> Path:
        folder = named_folder()
        return self.file if folder is None else place_in(folder, self.id or self.peek_id())

    @property
    def reading(self) -> "Engine":
        return self._engines[0]

    @property
    def writing(self) -> "Engine":
        return self._engines[1]

    @property
    def writing_beside(self) -> "Engine":
        return self._engines[1]

    @cached_property
    def _engines(self) -> "tuple[Engine, Engine]":
        # late: `kdx query` talks to the driver, and SQLAlchemy takes 0.13 s to import
        from kdx.store.sqlite.engines import engines

        return engines(self._connect, self._begin, self._commit)

    def connected(self) -> AbstractContextManager[None]:
        # To open a file takes no time, and each time it is looked whether it is still the same one.
        return nullcontext()

    def disconnect(self) -> None:
        """No connection is open outside of transactions."""

    def close(self) -> None:
        self._held.close()

    def exists(self) -> bool:
        return self.file.exists()

    def prepare(self, *, write: bool, create: bool) -> None:
        file.prepare(self.file, write=write, create=create)

    def tables(self, connection: "Connection") -> Collection[str]:
        return connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars().all()

    def refuse_foreign(self, connection: "Connection") -> None:
        refuse_foreign_objects(_driver_of(connection), self.file)

    @contextmanager
    def migrating(self) -> "Iterator[Connection]":
        # Recreates tables that others refer to; references are by name and are valid again at the end.
        self._check_references = False
        try:
            with self.writing.begin() as connection:
                yield connection
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        finally:
            self._check_references = True

    def keep_copy(self, revision: str) -> Path:
        copy = backup.unused_name(self.file, revision)
        self.back_up(copy)
        return copy

    def insert(self, table: "Table") -> Any:
        # late: `kdx query` talks to the driver, and SQLAlchemy takes 0.13 s to import
        from sqlalchemy.dialects.sqlite import insert

        return insert(table)

    def field(self, column: str, path: str) -> str:
        return f"json_extract({column}, '$.{path}')"

    def translate(self, error: BaseException) -> KdxError | None:
        error = getattr(error, "orig", None) or error  # SQLAlchemy keeps the driver's error there
        return errors.translate(error, self._held, self.patience) if isinstance(error, sqlite3.Error) else None

    def query(
        self, statement: str, values: tuple[Any, ...], mended: Callable[[], AbstractContextManager[None]]
    ) -> Rows:
        return query(self, self.file, statement, values, mended)

    def rows(self, connection: "Connection", statement: str, values: Mapping[str, Any]) -> Rows:
        from sqlalchemy import text

        with any_text(_driver_of(connection)):
            return kept(connection.execute(text(statement), values).cursor)

    def faults(self, connection: "Connection", most: int) -> Iterator[str]:
        return check.faults(_driver_of(connection), most)

    def stray_mode(self, connection: "Connection") -> str | None:
        return check.stray_mode(_driver_of(connection))

    def software(self) -> Software:
        return check.software()

    def back_up(self, target: Path) -> None:
        backup.back_up(self._begun, target)

    def url(self) -> tuple[str, Mapping[str, Any]]:
        return f"sqlite:///{self.file}", {"connect_args": {"timeout": OTHERS_PATIENCE}}

    def peek_id(self) -> str | None:
        address = f"file:{quote(os.fsencode(self.file))}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                refuse_foreign_objects(connection, self.file)
                found = connection.execute("SELECT id FROM identity").fetchone()
        except (sqlite3.Error, DatabaseError):
            return None
        return found[0] if found and isinstance(found[0], str) else None

    def _connect(self) -> sqlite3.Connection:
        return patiently(self._connect_to_write if self.writable else self._connect_to_read, self.patience)

    def _connect_to_write(self) -> sqlite3.Connection:
        return connect_to_write(self._held, self.patience, check_references=self._check_references)

    def _connect_to_read(self) -> sqlite3.Connection:
        return connect_to_read(self._held, self.patience)

    def _begin(self, driver: sqlite3.Connection, statement: str) -> None:
        patiently(lambda: lock(driver, statement), self.patience)
        self._refuse_another_database(driver)

    def _commit(self, driver: sqlite3.Connection) -> None:
        # A reader can block a commit; the transaction stays open and can be committed later.
        patiently(lambda: driver.execute("COMMIT"), self.patience)

    @contextmanager
    def _begun(self) -> Iterator[sqlite3.Connection]:
        """A separate connection in a transaction that reads."""
        with closing(self._connect()) as driver:
            patiently(lambda: lock(driver, "BEGIN"), self.patience)
            yield driver

    def _refuse_another_database(self, driver: sqlite3.Connection) -> None:
        """Raises DatabaseError if the opened file now holds another database."""
        if self.id is not None and driver.execute("SELECT id FROM identity").fetchone() != (self.id,):
            raise self._held.gone()


def _driver_of(connection: "Connection") -> sqlite3.Connection:
    from kdx.store.sqlite.engines import driver_of

    return driver_of(connection)
