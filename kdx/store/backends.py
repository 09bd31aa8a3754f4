"""Which backend an address means."""

from collections.abc import Callable
from pathlib import Path

from kdx.errors import DatabaseError
from kdx.store.backend import ADDRESSES, Backend, without_password


def _sqlite(address: str | Path, write: bool) -> Backend:
    from kdx.store.sqlite.backend import Sqlite

    return Sqlite(address, write=write)


BACKENDS: dict[str, Callable[[str | Path, bool], Backend]] = {"sqlite": _sqlite}
"""Scheme of an address, without a driver → its backend, whose driver is imported when it is made."""


def backend_of(address: str | Path, *, write: bool = False) -> Backend:
    """The backend of an address; without a scheme it is a file, so SQLite's.

    Raises:
        DatabaseError: it is no address, or one of what kdx does not open.
    """
    scheme = "sqlite" if isinstance(address, Path) or "://" not in address else _scheme(address)
    if scheme not in BACKENDS:
        raise DatabaseError(f"kdx does not open {scheme}", place=without_password(address), allowed=ADDRESSES)
    return BACKENDS[scheme](address, write)


def is_database_file(path: Path) -> bool:
    """Whether a file is a database, of whatever application; not one that is empty."""
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
    except (ArgumentError, ValueError):  # a ValueError is a port that is no number, or a bracket that is not closed
        place = without_password(address)
        raise DatabaseError("this is not a database URL", place=place, allowed=ADDRESSES) from None
