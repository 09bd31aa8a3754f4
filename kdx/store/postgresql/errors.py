"""Translates errors of PostgreSQL into errors of kdx, by their SQLSTATE [PostgreSQL, appendix A]."""

import psycopg

from kdx.errors import TRY_AGAIN, DatabaseError, KdxError, StorageError
from kdx.store.backend import OTHER_DATABASE, DamagedDatabaseError, TransactionLostError
from kdx.store.postgresql.address import ServerAddress

_EDITED = "somebody edited the database or made it up; kdx db check looks it through"
_RAISED_BY_TRIGGER = "23000"
_DEADLOCK = frozenset({"40001", "40P01"})
_ENDED = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03"})
"""The server stopped, crashed or starts, or ended a session that was silent for too long."""


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
            return DatabaseError(
                f"another process has kept the database locked for {patience:.0f} s",
                place=place,
                hint="end the program that holds it, then try again",
            )
        case _, "25006":
            return DatabaseError(
                "the server only reads: it is a standby, or was set to read only",
                place=place,
                hint="name its primary server with --db or KDX_DB",
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
                hint="take it back from a copy, or save what is left with pg_dump",
            )
        case (("23" | "22"), _) if state != _RAISED_BY_TRIGGER:
            return DatabaseError(f"its rows contradict each other: {_first_line(error)}", place=place, hint=_EDITED)
        case _, ("42P01" | "42703" | "42883"):
            return DatabaseError(f"it is not as kdx made it: {_first_line(error)}", place=place, hint=OTHER_DATABASE)
        case _:
            return None


def lost(place: str) -> TransactionLostError:
    """The error for a transaction that was broken off."""
    return TransactionLostError(
        "the connection to the server was lost in the middle of a transaction",
        place=place,
        hint="look whether the server runs, then try again; a sweep goes on with kdx resume",
    )


def _first_line(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error)).partition("\n")[0]
