"""Begins transactions: the lock that orders those that write, and how long they wait for it."""

from enum import Enum
from typing import Any

import psycopg

LOCK = 0x6B647831
"""The advisory lock of kdx, "kdx1"; each database has its own [PostgreSQL, 13.3.5]."""

LONGEST_SILENCE = 600
"""Seconds after which the server ends a transaction whose process has stopped or lost its machine.

Until then its locks hold up others.
"""


class Mode(Enum):
    """The kinds of transactions."""

    READ = "read"
    """It sees one state of the database, and holds up nobody."""
    WRITE = "write"
    """It runs while no other transaction writes."""
    WRITE_BESIDE = "write beside"
    """It runs beside others of its kind; locks of rows keep them apart."""


def begin(connection: psycopg.Connection[Any], mode: Mode, patience: float, *, identified: bool) -> str | None:
    """Begins a transaction, in one round trip, and returns the id of the database if that is asked for.

    Args:
        patience: seconds to wait for the locks of others.
        identified: whether to read the id.

    Raises:
        psycopg.Error: also where the id cannot be read, since this is no database of kdx any more.
    """
    statements = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]
    if mode is not Mode.READ:
        shared = "_shared" if mode is Mode.WRITE_BESIDE else ""
        statements = [
            # Each statement sees what was committed before it, and so before the lock was had.
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            f"SET LOCAL lock_timeout = {max(1, round(1000 * patience))}",
            f"SET LOCAL idle_in_transaction_session_timeout = {1000 * LONGEST_SILENCE}",
            # A server may be set to lose the last commits in a power cut.
            "SET LOCAL synchronous_commit = on",
            f"SELECT pg_advisory_xact_lock{shared}({LOCK})",
        ]
    if identified:
        statements.append("SELECT id FROM identity")
    cursor = connection.execute("; ".join(statements).encode())
    while cursor.nextset():
        pass
    row = cursor.fetchone() if identified else None
    return None if row is None else str(row[0])
