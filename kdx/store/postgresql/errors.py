"""Translates errors of PostgreSQL into errors of kdx, by their SQLSTATE [PostgreSQL, appendix A], or by its words."""

import psycopg

from kdx.errors import TRY_AGAIN, DatabaseError, KdxError, StorageError
from kdx.store.postgresql.address import ServerAddress
from kdx.store.refusals import BY, OTHER_DATABASE, DamagedDatabaseError, TransactionLostError, contradicting, locked

_RAISED_BY_TRIGGER = "23000"
_DEADLOCK = frozenset({"40001", "40P01"})
_ENDED = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"})
"""The server stopped, crashed or starts, or ended a session that was silent, or a transaction that took, too long."""

_BUSY = ("starting up", "shutting down", "in recovery mode", "not yet accepting connections")
# The last one of each is said by PgBouncer.
_FULL = ("too many connections", "too many clients", "remaining connection slots", "no more connections allowed")
_UNREACHABLE = ("Connection refused", "No such file or directory", "timeout expired", "Connection timed out")
_CUT = ("closed the connection unexpectedly", "Connection reset", "No route to host", "Network is unreachable")
_UNKNOWN_HOST = ("could not translate host name", "Name or service not known", "failed to resolve host")


class NoDatabaseError(DatabaseError):
    """The server has no database of this name."""


def translate(error: psycopg.Error, address: ServerAddress, patience: float) -> KdxError | None:
    """The error of kdx for an error within a transaction; None if it is a fault of kdx."""
    state = error.sqlstate or ""
    place = address.shown
    match state[:2], state:
        case _, state if state in _DEADLOCK or state in _ENDED or state.startswith("08"):
            return lost(place)
        case "", _ if isinstance(error, psycopg.OperationalError):
            return lost(place)
        case "", _ if "NUL" in str(error):
            return DatabaseError("a text has a character NUL, which PostgreSQL does not keep", place=place)
        case _, "55P03":
            return locked(place, patience)
        case _, "57014":
            return DatabaseError(
                "the server ended a statement that took longer than its statement_timeout",
                place=place,
                hint="raise it for this user: ALTER ROLE … SET statement_timeout = 0",
            )
        case _, "25006":
            return DatabaseError(
                "the server only reads: it is a standby, or was set to read only",
                place=place,
                hint=f"name its primary server with {BY}",
            )
        case _, "42501":
            return DatabaseError(
                f"no permission: {_first_line(error)}",
                place=place,
                hint="its owner grants it, such as GRANT ALL ON ALL TABLES IN SCHEMA public; kdx sweep also creates",
            )
        case (("53" | "58"), _) if state != "53300":
            return StorageError(
                f"the server failed: {_first_line(error)}",
                place=place,
                hint=f"look after its disk and memory, {TRY_AGAIN}",
            )
        case "XX", ("XX001" | "XX002"):
            return DamagedDatabaseError(
                f"the database is damaged: {_first_line(error)}",
                place=place,
                hint="restore a backup, or save what is left with pg_dump",
            )
        case (("23" | "22"), _) if state != _RAISED_BY_TRIGGER:
            return contradicting(place, _first_line(error))
        case _, ("42P01" | "42703" | "42883"):
            return DatabaseError(f"it is not as kdx made it: {_first_line(error)}", place=place, hint=OTHER_DATABASE)
        case _:
            return None


def lost(place: str) -> TransactionLostError:
    """The error for a transaction that was broken off."""
    return TransactionLostError(
        "the connection to the server was lost in the middle of a transaction",
        place=place,
        hint="look whether the server runs, then try again; kdx resume continues a sweep",
    )


def _first_line(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error)).partition("\n")[0]


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
