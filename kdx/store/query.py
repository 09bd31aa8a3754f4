"""Answers one query in SQL without writing.

The answer is read in one short transaction and kept, so that a user who reads it slowly, as in a pager, blocks no
sweep.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdx.store.backends import backend_of
from kdx.store.rows import Rows

if TYPE_CHECKING:
    from kdx.store.database import Database


def query(address: str | Path, statement: str, values: tuple[Any, ...] = ()) -> Rows:
    """The rows of one SELECT: numbers, texts, bytes or None; invalid text is decoded with surrogates.

    Args:
        address: as for `kdx.store.database.open_database`.
        values: the values for each `?` in the statement.

    Raises:
        KdxError: the statement is not understood, or is anything but a SELECT.
        DatabaseError: see `kdx.store.database.open_database`; also for a database of an older schema.
        StorageError: there is no room for the answer.
    """
    backend = backend_of(address)
    return backend.query(statement, values, partial(_mended, address))


def query_within(database: "Database", statement: str, values: Mapping[str, Any]) -> Rows:
    """The rows of one of kdx's own SELECTs, in the transaction of an enclosing `database.read` if there is one.

    Args:
        values: parameter `:name` in the statement → value.

    Raises:
        StorageError: there is no room for the answer.
    """
    with database.read() as connection:
        return database.backend.rows(connection, statement, values)


@contextmanager
def _mended(address: str | Path) -> Iterator[None]:
    """Repairs a database by opening it, or raises what is wrong with it."""
    from kdx.store.database import open_database  # slow to import, and seldom needed

    with open_database(address, write=False) as opened, opened.translate_errors():
        yield
