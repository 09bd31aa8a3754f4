"""One question in SQL, answered without ever writing.

The answer is taken in one short transaction and kept, in memory or, when it is long, in a temporary file: whoever reads
it at leisure, as in a pager, holds up no sweep. No library stands between here and SQLite, so that a question is
answered before SQLAlchemy would have been imported; it is needed only where the file is not as it should be.
"""

import os
import pickle
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NoReturn, Self
from urllib.parse import quote

from kdx.errors import KdxError, StorageError, did_you_mean
from kdx.store.foreign import refuse_foreign_journal, refuse_foreign_objects
from kdx.store.version import APPLICATION_ID, REVISION, VERSION_TABLE, application_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

CHUNK = 1000  # rows
IN_MEMORY = 1 << 24  # bytes of an answer; a longer one goes to a file
HEARD = 100_000  # steps of SQLite between two chances for Ctrl-C

_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
# Kinds of error that lie in the statement, not in the file.
_OF_STATEMENT = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_NOMEM,
}


class Rows:
    """An answer; it can be gone through more than once."""

    def __init__(self, columns: tuple[str, ...], kept: IO[bytes], count: int) -> None:
        self.columns = columns
        """Their names, each once."""
        self.count = count
        self._kept = kept

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._kept.seek(0)
        for _ in range(0, self.count, CHUNK):
            yield from pickle.load(self._kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._kept.close()


def query(database: str | Path, statement: str, values: tuple[Any, ...] = ()) -> Rows:
    """The rows that one SELECT gives: numbers, texts, bytes or None. Text that is no UTF-8 has surrogates.

    Args:
        database: a file, or an address as for `kdx.store.database.open_database`.
        values: of the `?` in the statement.

    Raises:
        KdxError: the statement is not understood, or is anything but a SELECT.
        DatabaseError: see `kdx.store.database.open_database`; also for a database of an older schema.
        StorageError: there is no room for the answer.
    """
    with closing(_begun(database)) as connection:
        try:
            cursor = connection.execute(statement, values)
            if cursor.description is None:
                raise KdxError("this is no statement that gives rows", allowed="one SELECT")
            return _kept(cursor)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            _tell(error, connection, database)


def query_within(connection: "Connection", statement: str, values: tuple[Any, ...] = ()) -> Rows:
    """The rows of one of kdx's own SELECTs, as part of a transaction that reads more than them.

    Args:
        connection: of `kdx.store.database.Database.read`.

    Raises:
        StorageError: there is no room for the answer.
    """
    driver: Any = connection.connection.driver_connection
    before, driver.text_factory = driver.text_factory, _text
    try:
        return _kept(driver.execute(statement, values))
    finally:
        driver.text_factory = before


def _text(text: bytes) -> str:
    return text.decode(errors="surrogateescape")


def _kept(cursor: sqlite3.Cursor) -> Rows:
    # Closed by Rows.
    kept = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
    count = 0
    try:
        while rows := cursor.fetchmany(CHUNK):
            pickle.dump(rows, kept, protocol=pickle.HIGHEST_PROTOCOL)
            count += len(rows)
    except OSError as error:
        kept.close()
        raise StorageError(
            f"no room for the answer: {error.strerror}",
            place=tempfile.gettempdir(),
            hint="set TMPDIR to another folder",
        ) from error
    except BaseException:
        kept.close()
        raise
    names: list[str] = []
    for name, *_ in cursor.description:
        before = sum(other == name or other.startswith(f"{name}:") for other in names)
        names.append(f"{name}:{before + 1}" if before else name)
    return Rows(tuple(names), kept, count)


def _begun(database: str | Path) -> sqlite3.Connection:
    """A connection that may only read, in a transaction."""
    try:
        return _connect(Path(database))
    except (sqlite3.Error, OSError, ValueError):
        # Slow to import; it mends what can be mended, and tells what is wrong.
        from kdx.store.database import open_database

        with open_database(database, write=False) as opened, opened.told():
            return _connect(opened.path)


def _connect(path: Path) -> sqlite3.Connection:
    """Raises ValueError for a file that is not of kdx, or not of this schema."""
    if application_of(path) != APPLICATION_ID:
        raise ValueError("not of kdx")
    refuse_foreign_journal(path)
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?mode=ro", uri=True, timeout=1, isolation_level=None
    )
    try:
        connection.text_factory = _text
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        if connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() != (REVISION,):
            raise ValueError("of another schema")
        refuse_foreign_objects(connection, path)
        connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
        # Python hears a signal when it is called.
        connection.set_progress_handler(lambda: None, HEARD)
    except BaseException:
        connection.close()
        raise
    return connection


def _tell(error: Exception, connection: sqlite3.Connection, database: str | Path) -> NoReturn:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from error
    # Of a function that is not allowed, the code is that of any error.
    if code == sqlite3.SQLITE_AUTH or str(error).startswith("not authorized"):
        raise KdxError(
            "kdx query only reads, and this would do something else; nothing was changed",
            allowed="one SELECT, WITH … SELECT, VALUES or EXPLAIN",
        ) from error
    if code in _OF_STATEMENT:
        hint = _nearest(str(error), connection) or "kdx query --schema tells tables, views and columns"
        raise KdxError(f"the statement is not understood: {error}", hint=hint) from error
    from kdx.store.database import open_database

    with open_database(database, write=False) as opened, opened.told():
        raise error


def _nearest(message: str, connection: sqlite3.Connection) -> str | None:
    what, _, name = message.rpartition(": ")
    if what != "no such table":
        return None
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    return did_you_mean(name, [table for (table,) in tables])
