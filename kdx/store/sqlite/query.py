"""Answers one SELECT of a user in a transaction that can only read.

It uses SQLite without SQLAlchemy, so that a query is answered before SQLAlchemy would have been imported; SQLAlchemy is
needed only where the file is not in order.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from kdx.errors import KdxError, did_you_mean
from kdx.store.backend import Backend
from kdx.store.rows import Rows, kept
from kdx.store.sqlite.foreign import refuse_foreign_journal, refuse_foreign_objects
from kdx.store.sqlite.header import APPLICATION_ID, application_of
from kdx.store.version import REVISION, VERSION_TABLE

SIGNAL_STEPS = 100_000  # steps of SQLite between two chances for Ctrl-C

_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
# Kinds of errors in the statement, not in the file.
_OF_STATEMENT = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_NOMEM,
}


def query(
    backend: Backend,
    file: Path,
    statement: str,
    values: tuple[Any, ...],
    mended: Callable[[], AbstractContextManager[None]],
) -> Rows:
    """The rows of one SELECT, see `kdx.store.backend.Backend.query`."""
    with closing(_begun(file, mended)) as connection:
        try:
            cursor = connection.execute(statement, values)
            if cursor.description is None:
                raise KdxError("this is no statement that gives rows", allowed="one SELECT")
            return kept(cursor)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            _raise_for_user(error, connection, backend)


@contextmanager
def any_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Decodes text that is not UTF-8 with surrogates."""
    before, connection.text_factory = connection.text_factory, _text
    try:
        yield
    finally:
        connection.text_factory = before


def _text(text: bytes) -> str:
    return text.decode(errors="surrogateescape")


def _begun(file: Path, mended: Callable[[], AbstractContextManager[None]]) -> sqlite3.Connection:
    """Opens a connection that may only read, in a transaction; repairs the database where that fails."""
    try:
        return _connect(file)
    except (sqlite3.Error, OSError, ValueError):
        with mended():
            return _connect(file)


def _connect(path: Path) -> sqlite3.Connection:
    """Opens a connection; raises ValueError for a file that is not of kdx, or not of this schema."""
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
        refuse_foreign_objects(connection, path)
        if connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() != (REVISION,):
            raise ValueError("of another schema")
        connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
        # Python handles signals when it is called.
        connection.set_progress_handler(lambda: None, SIGNAL_STEPS)
    except BaseException:
        connection.close()
        raise
    return connection


def _raise_for_user(error: Exception, connection: sqlite3.Connection, backend: Backend) -> NoReturn:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from error
    # A forbidden function has the code of any error.
    if code == sqlite3.SQLITE_AUTH or str(error).startswith("not authorized"):
        raise KdxError(
            "kdx query only reads, and this would do something else; nothing was changed",
            allowed="one SELECT, WITH … SELECT, VALUES or EXPLAIN",
        ) from error
    if code in _OF_STATEMENT:
        hint = _nearest(str(error), connection) or "kdx query --schema tells tables, views and columns"
        raise KdxError(f"the statement is not understood: {error}", hint=hint) from error
    raise backend.translate(error) or error from error


def _nearest(message: str, connection: sqlite3.Connection) -> str | None:
    what, _, name = message.rpartition(": ")
    if what != "no such table":
        return None
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    return did_you_mean(name, [table for (table,) in tables])
