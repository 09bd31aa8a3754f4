"""Checks a file of SQLite below the rows of its tables."""

import sqlite3
from collections import Counter
from collections.abc import Iterator

from kdx.store.backend import Software
from kdx.store.views import FINAL_STATE_TRIGGER


def faults(connection: sqlite3.Connection, most: int) -> Iterator[str]:
    """Describes pages that contradict each other, references to missing rows, and a missing trigger."""
    for (line,) in connection.execute(f"PRAGMA integrity_check({most})"):
        if line != "ok":
            yield f"the file is damaged: {line}"
    lost = Counter((row[0], row[2]) for row in connection.execute("PRAGMA foreign_key_check"))
    for (table, other), count in lost.items():
        yield f"{count} rows of {table} name a row of {other} that is not there"
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'run'")
    if (FINAL_STATE_TRIGGER,) not in triggers.fetchall():
        yield f"the trigger {FINAL_STATE_TRIGGER}, which keeps final states final, is missing"


def stray_mode(connection: sqlite3.Connection) -> str | None:
    """`wal` if another program set this mode, which opening to write undoes; else None."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    return "wal" if mode == "wal" else None


def software() -> Software:
    """The SQLite that Python uses."""
    bug = has_wal_reset_bug()
    warning = "which is not safe in WAL mode; kdx uses none" if bug else ""
    return Software("sqlite", sqlite3.sqlite_version, {"wal_reset_bug": bug}, warning)


def has_wal_reset_bug(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Whether this SQLite can corrupt a file in WAL mode that several processes write [sqlite.org/wal.html]."""
    return (3, 7, 0) <= version < (3, 51, 3)
