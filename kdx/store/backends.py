"""Chooses the backend for an address."""

import re
from collections.abc import Callable
from pathlib import Path

from kdx.errors import DatabaseError
from kdx.store.backend import ADDRESSES, Backend, without_password


def _sqlite(address: str | Path, write: bool) -> Backend:
    # late: each backend has its own drivers; most commands need one of them
    from kdx.store.sqlite.backend import Sqlite

    return Sqlite(address, write=write)


def _postgresql(address: str | Path, write: bool) -> Backend:
    try:
        from kdx.store.postgresql.backend import Postgresql
    except ModuleNotFoundError as missing:
        raise DatabaseError(
            f"the driver of PostgreSQL is not installed ({missing})",
            place=without_password(address),
            hint="pip install 'kdx[postgres]'",
        ) from missing

    return Postgresql(address, write=write)


BACKENDS: dict[str, Callable[[str | Path, bool], Backend]] = {"sqlite": _sqlite, "postgresql": _postgresql}
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


def set_password_apart(address: str) -> str:
    """An address that can be shown and opened: its password goes where the driver finds it, also in child processes."""
    if "@" not in address or not address.startswith("postgresql"):
        return address
    from kdx.store.postgresql.address import set_password_apart

    return set_password_apart(address)


def is_database_file(path: Path) -> bool:
    """Whether a file is a database of any application; an empty file is none."""
    from kdx.store.sqlite.header import application_of

    try:
        return path.is_file() and application_of(path) is not None
    except (OSError, ValueError):
        return False


def _scheme(address: str) -> str:
    # Not by SQLAlchemy, which takes longer to import than a query takes.
    scheme = re.match(r"([A-Za-z][\w.-]*)(?:\+[\w.-]+)?://", address, re.ASCII)
    if scheme is None:
        raise DatabaseError("this is not a database URL", place=without_password(address), allowed=ADDRESSES)
    return scheme[1]
