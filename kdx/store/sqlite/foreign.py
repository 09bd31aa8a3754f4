"""Refuses SQLite files from elsewhere that could do more than hold rows.

Views answer queries, triggers act on writes, and a journal is played back before anything is read and may name another
file to remove. So the views and triggers of kdx must match word by word, other triggers are refused, and a journal must
not name a file.
"""

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from kdx.errors import DatabaseError
from kdx.store.sqlite.views import TRIGGER, VIEW_STATEMENTS
from kdx.store.version import REVISION, VERSION_TABLE

TABLES = frozenset({
    "attempt", "cell", "component", "environment", "evaluation", "evaluation_document", "evaluation_metric",
    "identity", "invalidation", "metric", "note", "output", "plan", "plan_cell", "run", "search", "sweep",
    "sweep_cell", "sweep_run", "sweep_search", "tag", "test_document", "trial",
})  # fmt: skip

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names a super-journal [sqlite.org/fileformat2.html, 3]."""


def refuse_foreign_objects(connection: sqlite3.Connection, path: Path) -> None:
    """Checks all objects of the schema. It comes before anything else is asked of the file.

    Raises:
        DatabaseError: a view or a trigger of kdx has another text, there is a trigger of somebody else, or something
            else has the name of a table or a view of kdx.
    """
    statement = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"  # indices of keys have none
    rows = [tuple(map(str, row)) for row in connection.execute(statement).fetchall()]
    tables = {*TABLES, VERSION_TABLE}
    for kind, name, sql in rows:
        # SQLite takes names in any case for the same. The text of a table begins so, unless it is a virtual one.
        plain = kind == "table" and sql.startswith("CREATE TABLE ") and name.lower() in tables
        own_view = kind == "view" and name in VIEW_STATEMENTS
        if name.lower() in (*tables, *VIEW_STATEMENTS) and kind != "trigger" and not plain and not own_view:
            raise _foreign(path, kind, name)
    revision = REVISION
    if any(name.lower() == VERSION_TABLE for _, name, _ in rows):
        (revision,) = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() or (REVISION,)
    for kind, name, sql in rows:
        # An earlier schema may have other views, which are made anew before they are read; a newer one is refused.
        if (kind == "trigger" and sql != TRIGGER and str(revision) <= REVISION) or (
            kind == "view" and revision == REVISION and sql != VIEW_STATEMENTS.get(name, sql)
        ):
            raise _foreign(path, kind, name)


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
                raise _not_of_kdx(path, f"its {suffix} is no plain file")
            if suffix == "journal" and _ends_with_magic(beside):
                raise _not_of_kdx(path, "its journal names another file, which SQLite would remove")


def _ends_with_magic(journal: Path) -> bool:
    with journal.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - len(_JOURNAL_MAGIC)))
        return file.read() == _JOURNAL_MAGIC


def _foreign(path: Path, kind: str, name: str) -> DatabaseError:
    return _not_of_kdx(path, f"its {kind} `{name[:60]}` is not one that kdx makes")


def _not_of_kdx(path: Path, problem: str) -> DatabaseError:
    return DatabaseError(
        f"this file was not made by kdx alone: {problem}",
        place=str(path),
        hint="do not use it; if it is yours, take it back from a copy",
    )
