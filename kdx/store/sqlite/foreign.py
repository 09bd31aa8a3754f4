"""Refuses SQLite files from elsewhere that could do more than hold rows.

Views answer queries, triggers act on writes, and a journal is played back before anything is read and may name another
file to remove. So the views and triggers of kdx must match word by word, other triggers are refused, and a journal must
not name a file.
"""

import hashlib
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from kdx.errors import DatabaseError
from kdx.store.version import REVISION, VERSION_TABLE

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
    """Checks all objects of the schema. It comes before anything else is asked of the file.

    Raises:
        DatabaseError: a view or a trigger of kdx has another text, there is a trigger of somebody else, or something
            else has the name of a table or a view of kdx.
    """
    statement = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"  # indices of keys have none
    rows = [tuple(map(str, row)) for row in connection.execute(statement).fetchall()]
    names = {*TABLES, VERSION_TABLE, *(what.split()[1] for what in OBJECTS)}
    for kind, name, sql in rows:
        # SQLite takes names in any case for the same. The text of a table begins so, unless it is a virtual one.
        plain = kind == "table" and sql.startswith("CREATE TABLE ") and name.lower() in (*TABLES, VERSION_TABLE)
        if name.lower() in names and kind != "trigger" and not plain and f"{kind} {name}" not in OBJECTS:
            raise _foreign(path, f"its {kind} `{name[:60]}` is not one that kdx makes")
    has_version = any(name.lower() == VERSION_TABLE for _, name, _ in rows)
    expected = _objects_of(connection) if has_version else OBJECTS
    if expected is None:
        return  # of a schema that kdx refuses
    for kind, name, sql in rows:
        if (kind == "trigger" or f"{kind} {name}" in OBJECTS) and expected.get(f"{kind} {name}") != digest(sql):
            raise _foreign(path, f"its {kind} `{name[:60]}` is not one that kdx makes")


def _objects_of(connection: sqlite3.Connection) -> Mapping[str, str] | None:
    """Like `OBJECTS`, for the schema of a database; None for a schema that kdx does not know."""
    revision = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
    return OBJECTS if revision in (None, (REVISION,)) else _objects_at(str(revision[0]))


@cache
def _objects_at(revision: str) -> Mapping[str, str] | None:
    """`OBJECTS` of an older schema. It takes 0.2 s, and is needed only for a database that is to be migrated."""
    # SQLAlchemy and Alembic are slow to import, and opening a database of this schema needs neither here.
    from alembic.util import CommandError
    from sqlalchemy import create_engine

    from kdx.store.migrating import run_migrations

    try:
        with create_engine("sqlite://").begin() as made:
            run_migrations(made, revision)
            statement = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('view', 'trigger')"
            return {f"{kind} {name}": digest(sql) for kind, name, sql in made.exec_driver_sql(statement)}
    except CommandError:
        return None


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
