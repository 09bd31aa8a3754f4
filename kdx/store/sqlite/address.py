"""Finds the file of an address."""

from pathlib import Path

from kdx.errors import DatabaseError
from kdx.store.backend import ADDRESSES, without_password

_DRIVERS = ("sqlite", "sqlite+pysqlite")


def file_of(address: str | Path) -> Path:
    """The file of a path, or of an address such as `sqlite:///runs.db`.

    Raises:
        DatabaseError: no file can have this address.
    """
    if not str(address) or "\0" in str(address):
        raise _nameless(address)
    if isinstance(address, Path) or "://" not in address:
        return Path(address)
    # late: SQLAlchemy takes 0.13 s to import, and a path needs no parser of addresses
    from sqlalchemy import make_url

    place = without_password(address)
    try:
        url = make_url(address)
    except ValueError:  # the port is no number
        raise DatabaseError("this is not a database URL", place=place, allowed=ADDRESSES) from None
    if url.database in (None, "", ":memory:"):
        raise DatabaseError("several processes write it, so it must be a file", place=place, allowed="sqlite:///FILE")
    if url.host or url.port is not None or url.username or url.query or url.drivername not in _DRIVERS:
        problem = "a database in a file has no host, user, driver or options"
        raise DatabaseError(problem, place=place, allowed=f"sqlite:///{url.database}")
    if "\0" in str(url.database):  # written as %00
        raise _nameless(address)
    return Path(str(url.database))


def _nameless(address: str | Path) -> DatabaseError:
    return DatabaseError(f"no file is named {str(address)!r}", allowed=ADDRESSES)
