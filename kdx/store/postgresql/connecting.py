"""Connects to a server, with patience where it may answer later."""

import random
import time
from functools import cache
from typing import Any

import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Loader

from kdx.errors import DatabaseError, KdxError
from kdx.store.backend import OTHER_DATABASE
from kdx.store.postgresql.address import ServerAddress

LONGEST_PAUSE = 5.0
"""Seconds between two attempts to connect, at most."""

_ALIVE = {
    # Without these a connection to a machine that lost its power hangs for hours [PostgreSQL, 34.1.2].
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_BUSY = ("starting up", "shutting down", "in recovery mode", "not yet accepting connections")
# The last one of each is said by PgBouncer.
_FULL = ("too many connections", "too many clients", "remaining connection slots", "no more connections allowed")
_UNREACHABLE = ("Connection refused", "No such file or directory", "timeout expired", "Connection timed out")
_CUT = ("closed the connection unexpectedly", "Connection reset", "No route to host", "Network is unreachable")
_UNKNOWN_HOST = ("could not translate host name", "Name or service not known", "failed to resolve host")


class NoDatabaseError(DatabaseError):
    """The server has no database of this name."""


class _Text(Loader):
    """Any value as the server writes it."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


class _Flag(Loader):
    """A boolean as 1 or 0, which is what it is on SQLite."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _Decimal(Loader):
    """A sum of whole numbers, which the server makes a decimal one."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


@cache
def adapters() -> AdaptersMap:
    """Makes values what they are on SQLite; JSON stays the text that was written."""
    made = AdaptersMap(psycopg.adapters)
    for name in ("json", "jsonb"):
        made.register_loader(name, _Text)
    made.register_loader("bool", _Flag)
    made.register_loader("numeric", _Decimal)
    return made


@cache
def plain_adapters() -> AdaptersMap:
    """The same for a user's query, which may give any type: what is no number and no bytes is text."""
    made = AdaptersMap(adapters())
    for kind in psycopg.adapters.types:
        if kind.name not in ("bool", "numeric", "bytea", "int2", "int4", "int8", "oid", "float4", "float8"):
            made.register_loader(kind.oid, _Text)
        if kind.array_oid:
            made.register_loader(kind.array_oid, _Text)
    return made


def connect(
    address: ServerAddress, patience: float, *, reconnects: bool, context: AdaptersMap | None = None
) -> psycopg.Connection[Any]:
    """A connection outside of any transaction.

    Args:
        patience: seconds to wait for a server that starts, or that has no connection left.
        reconnects: whether to wait as long for a server that cannot be reached.

    Raises:
        DatabaseError: there is no such server or database, or it refuses this user.
    """
    deadline, pause = time.monotonic() + patience, 0.05
    while True:
        try:
            connection = psycopg.connect(
                **{**_ALIVE, **address.parameters, "client_encoding": "UTF8", "application_name": "kdx"},  # type: ignore[arg-type]
                autocommit=True,
                # Statements of a pooler between kdx and its server may reach different sessions.
                prepare_threshold=None,
                context=context or adapters(),
            )
        except psycopg.Error as error:
            refusal, temporary = refused(address, error, reconnects=reconnects)
            if not temporary or time.monotonic() + pause > deadline:
                raise refusal from error
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, LONGEST_PAUSE)
            continue
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            connection.close()
            raise DatabaseError(
                f"the database has the encoding {encoding}, which cannot hold every text",
                place=address.shown,
                hint=f"make one with: createdb --encoding=UTF8 --template=template0 {address.database}2",
            )
        return connection


def refused(address: ServerAddress, error: psycopg.Error, *, reconnects: bool) -> tuple[KdxError, bool]:
    """The error for a connection that could not be made, and whether it may succeed later.

    libpq gives no code for such an error, only the server's words; they are English unless its administrator chose
    another language, in which the message is the server's own.
    """
    text = str(error)
    where, user = address.server, address.parameters.get("user", "this user")

    def says(*words: str) -> bool:
        return any(word in text for word in words)

    def fault(problem: str, hint: str) -> KdxError:
        return DatabaseError(problem, place=address.shown, hint=hint)

    if says("password authentication failed", "no password supplied"):
        given = "no password was given" if says("no password supplied") else "the password is wrong, or the user is"
        hint = "set PGPASSWORD, or write a line for it into the file of PGPASSFILE (~/.pgpass)"
        return fault(f"the server refused {user}: {given}", hint), False
    if says("database ") and says("does not exist"):
        hint = f"make it, as a user who may: createdb --encoding=UTF8 {address.database}"
        problem = f"there is no database `{address.database}` on {where}"
        return NoDatabaseError(problem, place=address.shown, hint=hint), False
    if says("role ") and says("does not exist"):
        return fault(f"there is no user `{user}` on {where}", "name another before the @ of the address"), False
    if says("no pg_hba.conf entry", "permission denied for database"):
        hint = "its administrator grants it, with GRANT CONNECT and in pg_hba.conf"
        return fault(f"the server does not let {user} connect to `{address.database}` from here", hint), False
    if says(*_FULL):
        hint = "raise max_connections, put a pooler such as PgBouncer before it, or take fewer workers"
        return fault(f"the server {where} has no connection left", hint), True
    if says(*_BUSY):
        return fault(f"the server {where} is starting, stopping or recovering", "wait for it, then try again"), True
    if says(*_UNKNOWN_HOST):
        return fault(f"there is no host `{where}`", "look at the host in the address"), reconnects
    if says(*_UNREACHABLE, *_CUT):
        hint = "start the server, or look at host and port in the address"
        return fault(f"no PostgreSQL server answers at {where}", hint), reconnects
    return fault(f"the server cannot be used: {_last_line(text)}", OTHER_DATABASE), False


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
