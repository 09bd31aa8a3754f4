"""Connections to a file, and how they wait for those of others.

A transaction waits in slices, between which signals are heard.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from kdx.store.sqlite.file import HeldFile

SLICE = 1.0  # seconds; between two of them, Ctrl-C is heard

_T = TypeVar("_T")


def patiently(do: Callable[[], _T], patience: float) -> _T:
    """What `do` gives, once nobody else keeps the database locked, or after so many seconds its error."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return do()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise


def connect_to_write(file: HeldFile, patience: float, *, check_references: bool) -> sqlite3.Connection:
    """A connection whose commits survive a power cut.

    Raises:
        DatabaseError: the file is no longer the one that was opened, or has other names; it was not touched.
    """
    connection = _connect(file.real, "rw", patience)
    try:
        file.refuse_another()
        # Per connection: SQLite does not keep these in the file.
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA foreign_keys = {'ON' if check_references else 'OFF'}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(file: HeldFile, patience: float) -> sqlite3.Connection:
    """A connection that cannot write; what a killed writer left half-done is undone first, where that is permitted."""
    connection = _connect(file.real, "ro", patience)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.OperationalError as error:
        connection.close()
        undoable = os.access(file.real, os.W_OK) and os.access(file.real.parent, os.W_OK)
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK or not undoable:
            raise
        # A writer was killed in mid-commit; nobody can read before its half transaction is undone, and SQLite undoes it
        # at the first look by somebody who may write.
        with closing(_connect(file.real, "rw", patience)) as other:
            other.execute("PRAGMA schema_version")
        return _connect(file.real, "ro", patience)
    except BaseException:
        connection.close()
        raise
    return connection


def lock(connection: sqlite3.Connection, begin: str) -> None:
    """Begins a transaction that will not have to wait again before its commit."""
    connection.execute(begin)
    try:
        # A plain BEGIN locks nothing before the first look.
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _connect(file: Path, mode: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(file))}?mode={mode}",
        uri=True,
        timeout=min(SLICE, patience),
        # The driver begins no transaction of its own accord; it would do so late, and deferred.
        isolation_level=None,
    )
