"""Connects to a file of SQLite, and waits while other processes lock it.

A transaction waits in slices, between which Python handles signals.
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

SLICE = 1.0  # seconds; Ctrl-C is handled between two slices
CACHE = 1 << 16
"""KiB of pages that a connection for reading may keep. With SQLite's 2 MiB, a pass over 100,000 runs takes twice as
long, since it reads pages again and again."""

_T = TypeVar("_T")


def patiently(do: Callable[[], _T], patience: float) -> _T:
    """Calls `do` until no other process locks the database; after `patience` seconds its error is raised."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return do()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise


def connect_to_write(file: HeldFile, patience: float, *, check_references: bool) -> sqlite3.Connection:
    """Opens a connection whose commits survive a power cut.

    Raises:
        DatabaseError: the file is no longer the opened one, or has several names; it was not touched.
    """
    connection = _connect(file.real, "rw", patience)
    try:
        file.refuse_another()
        # SQLite keeps these for each connection, not in the file.
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA foreign_keys = {'ON' if check_references else 'OFF'}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(file: HeldFile, patience: float) -> sqlite3.Connection:
    """Opens a connection that cannot write; the half transaction of a killed writer is undone first, if permitted."""
    connection = _connect(file.real, "ro", patience)
    try:
        connection.execute("PRAGMA schema_version")
        connection.execute(f"PRAGMA cache_size = -{CACHE}")
    except sqlite3.OperationalError as error:
        connection.close()
        undoable = os.access(file.real, os.W_OK) and os.access(file.real.parent, os.W_OK)
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK or not undoable:
            raise
        # A writer was killed during a commit. Nobody can read before its half transaction is undone, which SQLite does
        # at the first read of a connection that may write.
        with closing(_connect(file.real, "rw", patience)) as other:
            other.execute("PRAGMA schema_version")
        return _connect(file.real, "ro", patience)
    except BaseException:
        connection.close()
        raise
    return connection


def lock(connection: sqlite3.Connection, begin: str) -> None:
    """Begins a transaction that does not have to wait again before its commit."""
    connection.execute(begin)
    try:
        # A plain BEGIN locks nothing before the first read.
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _connect(file: Path, mode: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(file))}?mode={mode}",
        uri=True,
        timeout=min(SLICE, patience),
        # Else the driver would begin transactions itself, late and deferred.
        isolation_level=None,
    )
