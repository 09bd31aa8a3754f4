"""Chooses the backend for an address."""

from collections.abc import Callable
from pathlib import Path

from kdx.errors import DatabaseError
from kdx.store.backend import ADDRESSES, Backend, without_password


def _sqlite(address: str | Path, write: bool) -> Backend:
    from kdx.store.sqlite.backend import Sqlite

    return Sqlite(address, write=write)


BACKENDS: dict[str, Callable[[str | Path, bool], Backend]] = {"sqlite": _sqlite}
"""Scheme of an address, without a driver → its backend, which imports the database driver when it is created."""


def backend_of(address: str | Path, *, write: bool = False) -> Backend:
    """The backend of an address; an address without a scheme is a file of SQLite.

    Raises:
        DatabaseError: the address is invalid, or kdx does not open such databases.
    """
    scheme = "sqlite" if isinstance(address, Path) or "://" not in address else _scheme(address)
    if scheme not in BACKENDS:
        raise DatabaseError(f"kdx does not open {scheme}", place=without_password(address), allowed=ADDRESSES)
    return BACKENDS[scheme](address, write)


def is_database_file(path: Path) -> bool:
    """Whether a file is a database of any application; an empty file is none."""
    from kdx.store.sqlite.header import application_of

    try:
        return path.is_file() and application_of(path) is not None
    except (OSError, ValueError):
        return False


def _scheme(address: str) -> str:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(address).get_backend_name()
    except (ArgumentError, ValueError):  # ValueError: the port is no number, or a bracket is not closed
        place = without_password(address)
        raise DatabaseError("this is not a database URL", place=place, allowed=ADDRESSES) from None
