"""Reads the address of a database on a server, without a database library."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from kdx.errors import DatabaseError
from kdx.store.refusals import ADDRESSES, POSTGRESQL, without_password

_SCHEMES = ("postgresql", "postgresql+psycopg")
_SECRET = frozenset({"password", "sslpassword"})


@dataclass(frozen=True)
class ServerAddress:
    """Where a database is."""

    shown: str
    """The address without its password."""
    parameters: Mapping[str, str] = field(repr=False)
    """What libpq needs to connect, as its manual names it; a password that is missing comes from PGPASSWORD or
    PGPASSFILE."""

    @property
    def database(self) -> str:
        """The name of the database."""
        return self.parameters["dbname"]

    @property
    def server(self) -> str:
        """The server in words, such as `db.example.org:5432`."""
        host = self.parameters.get("host", "localhost")
        return f"{host}:{self.parameters['port']}" if "port" in self.parameters else host


def address_of(address: str | Path) -> ServerAddress:
    """The parts of an address such as `postgresql+psycopg://user@host:5432/database?sslmode=require`.

    Raises:
        DatabaseError: it is no such address.
    """
    shown = without_password(address)
    try:
        parts = urlsplit(str(address))
        port = parts.port
        host = parts.hostname
        more = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:  # the port is no number, or a bracket is not closed
        raise DatabaseError("this is not a database URL", place=shown, allowed=ADDRESSES) from None
    if parts.scheme not in _SCHEMES:
        problem = f"kdx opens PostgreSQL through psycopg, and not through {parts.scheme.partition('+')[2]}"
        raise DatabaseError(problem, place=shown, allowed=POSTGRESQL)
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database or "\0" in str(address) or "%00" in str(address):
        raise DatabaseError("the address names no database", place=shown, allowed=POSTGRESQL)
    if secret := sorted(_SECRET & more.keys()):
        raise DatabaseError(
            f"{secret[0]} stands among the options of the address",
            place=shown,
            hint="set PGPASSWORD, or write a file for PGPASSFILE, and leave it out here",
        )
    named = {"host": host, "port": port, "user": parts.username, "password": parts.password, "dbname": database}
    given = {key: unquote(str(value)) for key, value in named.items() if value is not None}
    return ServerAddress(shown, {**more, **given})


def set_password_apart(address: str) -> str:
    """The address of a server without its password, which goes to PGPASSWORD for this process and its children.

    So no message, log or record that has the address has the password too.
    """
    found = re.fullmatch(r"(postgresql(?:\+\w+)?://[^:/@]*):(.*)(@[^@]*)", address, re.DOTALL)
    if found is None:
        return address
    before, password, after = found.groups()
    os.environ["PGPASSWORD"] = unquote(password)
    return before + after
