"""Answers one SELECT of a user in a transaction that can only read, without SQLAlchemy."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, NoReturn

import psycopg

from kdx.errors import KdxError, did_you_mean
from kdx.store.backend import Backend
from kdx.store.postgresql.address import ServerAddress
from kdx.store.postgresql.connecting import connect, plain_adapters
from kdx.store.postgresql.objects import objects
from kdx.store.rows import Rows, kept
from kdx.store.version import REVISION, VERSION_TABLE

_READS = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(select|with|values|table|explain)\b", re.IGNORECASE | re.DOTALL)
_NOTHING = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_ANOTHER_KIND = frozenset({"25006", "0A000", "42501"})
"""Read-only transaction, feature not supported, insufficient privilege [PostgreSQL, appendix A]."""


class _Fetched:
    """The rows of a statement, fetched from the server in parts."""

    def __init__(self, cursor: psycopg.RawCursor[Any], statement: str, values: Sequence[Any]) -> None:
        self._cursor = cursor
        # The server takes only a SELECT into a cursor.
        _execute(cursor, f"DECLARE kdx NO SCROLL CURSOR FOR {statement}", values)
        cursor.execute("FETCH FORWARD 0 FROM kdx", [])

    @property
    def description(self) -> Sequence[Any]:
        return self._cursor.description or ()

    def fetchmany(self, size: int = 1, /) -> Sequence[Any]:
        return self._cursor.execute(f"FETCH FORWARD {size} FROM kdx".encode(), []).fetchall()


def query(
    backend: Backend,
    address: ServerAddress,
    statement: str,
    values: tuple[Any, ...],
    mended: Callable[[], AbstractContextManager[None]],
) -> Rows:
    """The rows of one SELECT, see `kdx.store.backend.Backend.query`."""
    if _NOTHING.fullmatch(statement):
        raise KdxError("this is no statement that gives rows", allowed="one SELECT")
    reads = _READS.match(statement)
    if reads is None:
        raise _only_reads()
    numbered = _numbered(statement, values)
    with closing(connect(address, backend.patience, reconnects=False, context=plain_adapters())) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if not _in_order(connection):
            with mended():
                raise KdxError("the database was brought up to date meanwhile; ask again", place=backend.name)
        cursor = psycopg.RawCursor(connection)
        try:
            if reads[1].lower() == "explain":
                return kept(_execute(cursor, numbered, values))
            return kept(_Fetched(cursor, numbered, values))
        except psycopg.Error as error:
            _raise_for_user(error, address, backend)


def _execute(cursor: psycopg.RawCursor[Any], statement: str, values: Sequence[Any]) -> psycopg.RawCursor[Any]:
    # Only where the result is to be binary does psycopg use the protocol that takes one statement; in the other, `;`
    # could be followed by the end of this transaction and whatever else.
    return cursor.execute(statement.encode(), values, binary=True)


def _in_order(connection: psycopg.Connection[Any]) -> bool:
    try:
        return connection.execute(f"SELECT version_num FROM {VERSION_TABLE}".encode()).fetchone() == (REVISION,)
    except psycopg.errors.UndefinedTable:
        return False


def _numbered(statement: str, values: Sequence[Any]) -> str:
    """The statement with `$1`, `$2`, … for each `?`."""
    parts = statement.split("?") if values else [statement]
    return "".join([parts[0], *(f"${number}{part}" for number, part in enumerate(parts[1:], 1))])


def _raise_for_user(error: psycopg.Error, address: ServerAddress, backend: Backend) -> NoReturn:
    state = error.sqlstate or ""
    if state in _ANOTHER_KIND and state != "42501":
        raise _only_reads() from error
    if state[:2] in ("42", "22", "21", "54", "0A", "2F", "3F"):
        message = (error.diag.message_primary or str(error)).partition("\n")[0]
        hint = _nearest(error, address, backend) or "kdx query --schema tells tables, views and columns"
        raise KdxError(f"the statement is not understood: {message}", hint=hint) from error
    raise backend.translate(error) or error from error


def _nearest(error: psycopg.Error, address: ServerAddress, backend: Backend) -> str | None:
    found = re.fullmatch(r'relation "(.*)" does not exist', error.diag.message_primary or "")
    if error.sqlstate != "42P01" or not found:
        return None
    with closing(connect(address, backend.patience, reconnects=False)) as connection:
        return did_you_mean(found[1], objects(connection))


def _only_reads() -> KdxError:
    return KdxError(
        "kdx query only reads, and this would do something else; nothing was changed",
        allowed="one SELECT, WITH … SELECT, VALUES or EXPLAIN",
    )
