"""Refuses SQLite files from elsewhere that could do more than hold rows.

Views answer queries, triggers act on writes, and a journal is played back before anything is read and may name another
file to remove. So the views and triggers of kdx must match word by word, other triggers are refused, and a journal must
not name a file.
"""

import hashlib
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from kdx.errors import DatabaseError

FINAL_STATE_TRIGGER = "run_final_state"
"""Name of the trigger that keeps runs in their final state."""

OBJECTS = {
    "view cells": "de404d9638d6192f",
    "view former_runs": "345e46ef547ef8cd",
    "view runs": "d09661c1886acf8b",
    "view curves": "d15ea0a74e84d11b",
    "view evaluations": "d0b3938da8f2217e",
    f"trigger {FINAL_STATE_TRIGGER}": "9fb4f0acc20ff047",
}
"""Kind and name → digest of its text, as the migrations make it on SQLite."""

TABLES = frozenset({
    "attempt", "cell", "cell_migration", "environment", "evaluation", "evaluation_document", "evaluation_metric",
    "identity", "invalidation", "metric", "note", "output", "part", "plan", "plan_cell", "run", "search", "sweep",
    "sweep_cell", "sweep_run", "sweep_search", "tag", "test_document", "trial",
})  # fmt: skip

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names a super-journal [sqlite.org/fileformat2.html, 3]."""


def digest(sql: str) -> str:
    """The digest of the text of a view or a trigger."""
    return hashlib.sha256(sql.encode()).hexdigest()[:16]


def refuse_foreign_objects(connection: sqlite3.Connection, path: Path) -> None:
    """Checks all objects of the schema, before any of them runs.

    Raises:
        DatabaseError: a view or a trigger of kdx has another text, there is a trigger of somebody else, or a table of
            kdx is no plain table.
    """
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    for kind, name, sql in rows:
        what = f"{kind} {name}"
        if what in OBJECTS and digest(str(sql)) == OBJECTS[what]:
            continue
        if what in OBJECTS or kind == "trigger":
            raise _foreign(path, f"its {kind} `{str(name)[:60]}` is not one that kdx makes")
        plain = kind == "table" and not str(sql).upper().startswith("CREATE VIRTUAL")
        if name in TABLES and kind != "index" and not plain:
            raise _foreign(path, f"its `{name}` is no plain table")


def refuse_foreign_journal(path: Path) -> None:
    """Checks the files beside a database before SQLite opens it and removes a file that its journal names.

    Raises:
        DatabaseError: the journal names a file, which no journal of kdx does, since kdx writes one database at a time;
            or it is no plain file.
    """
    for suffix in ("journal", "wal", "shm"):
        beside = path.with_name(f"{path.name}-{suffix}")
        with suppress(FileNotFoundError, PermissionError):
            if not stat.S_ISREG(beside.lstat().st_mode):
                raise _foreign(path, f"its {suffix} is no plain file")
            if suffix == "journal" and _ends_with_magic(beside):
                raise _foreign(path, "its journal names another file, which SQLite would remove")


def _ends_with_magic(journal: Path) -> bool:
    with journal.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - len(_JOURNAL_MAGIC)))
        return file.read() == _JOURNAL_MAGIC


def _foreign(path: Path, problem: str) -> DatabaseError:
    return DatabaseError(
        f"this file was not made by kdx alone: {problem}",
        place=str(path),
        hint="do not use it; if it is yours, take it back from a copy",
    )
