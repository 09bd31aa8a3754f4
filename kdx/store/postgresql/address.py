"""Reads the address of a database on a server."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from kdx.errors import DatabaseError
from kdx.store.refusals import ADDRESSES, POSTGRESQL, without_password

_SCHEMES = ("postgresql", "postgresql+psycopg")
_SECRET = ("password", "sslpassword")


@dataclass(frozen=True)
class ServerAddress:
    """The address of a database on a server."""

    shown: str
    """The address without its password."""
    url: URL = field(repr=False)

    @property
    def parameters(self) -> dict[str, Any]:
        """What libpq needs to connect, as its manual names it.

        A password that is missing comes from PGPASSWORD or PGPASSFILE.
        """
        options = {name: values[-1] for name, values in self.url.normalized_query.items()}
        return options | self.url.translate_connect_args(username="user", database="dbname")

    @property
    def database(self) -> str:
        """The name of the database."""
        return self.url.database or ""

    @property
    def server(self) -> str:
        """The server in words, such as `db.example.org:5432`."""
        host = self.parameters.get("host", "localhost")
        return f"{host}:{self.url.port}" if self.url.port else host


def address_of(address: str | Path) -> ServerAddress:
    """The parts of an address such as `postgresql+psycopg://user@host:5432/database?sslmode=require`.

    Raises:
        DatabaseError: it is no such address.
    """
    shown = without_password(address)
    try:
        url = make_url(str(address))
    except (ArgumentError, ValueError):  # the port is no number, or a bracket is not closed
        raise DatabaseError("this is not a database URL", place=shown, allowed=ADDRESSES) from None
    if url.drivername not in _SCHEMES:
        problem = f"kdx opens PostgreSQL through psycopg, and not through {url.drivername.partition('+')[2]}"
        raise DatabaseError(problem, place=shown, allowed=POSTGRESQL)
    database = unquote(url.database or "")
    if not database or "/" in database or "\0" in str(address) or "%00" in str(address):
        raise DatabaseError("the address names no database", place=shown, allowed=POSTGRESQL)
    if secret := [name for name in _SECRET if name in url.query]:
        raise DatabaseError(
            f"{secret[0]} stands among the options of the address",
            place=shown,
            hint="set PGPASSWORD, or write a file for PGPASSFILE, and leave it out here",
        )
    return ServerAddress(shown, url.set(drivername="postgresql+psycopg", database=database))
