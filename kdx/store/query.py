"""One question in SQL, answered without ever writing.

The answer is taken in one short transaction and kept: whoever reads it at leisure, as in a pager, holds up no sweep.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdx.store.backend import Backend
from kdx.store.backends import backend_of
from kdx.store.rows import Rows

if TYPE_CHECKING:
    from kdx.store.database import Database


def query(address: str | Path, statement: str, values: tuple[Any, ...] = ()) -> Rows:
    """The rows that one SELECT gives: numbers, texts, bytes or None. Text that is none has surrogates.

    Args:
        address: as for `kdx.store.database.open_database`.
        values: of the `?` in the statement.

    Raises:
        KdxError: the statement is not understood, or is anything but a SELECT.
        DatabaseError: see `kdx.store.database.open_database`; also for a database of an older schema.
        StorageError: there is no room for the answer.
    """
    backend = backend_of(address)
    return backend.query(statement, values, partial(_mended, backend))


def query_within(database: "Database", statement: str, values: Mapping[str, Any]) -> Rows:
    """The rows of one of kdx's own SELECTs, of the state that others in a transaction of `database.read` are of.

    Args:
        values: of `:name` in the statement.

    Raises:
        StorageError: there is no room for the answer.
    """
    with database.read() as connection:
        return database.backend.rows(connection, statement, values)


@contextmanager
def _mended(backend: Backend) -> Iterator[None]:
    """Opening a database mends what can be mended, and tells what is wrong."""
    from kdx.store.database import open_database  # slow to import, and hardly ever called for

    with open_database(backend.location, write=False) as opened, opened.translate_errors():
        yield
