"""The objects of a database of SQLite: how the schema is worded, and which objects of a file kdx refuses.

A file from elsewhere is refused if a view answers in place of a table, or a trigger acts in place of kdx. Its own views
never answer: whoever writes makes those of this kdx in their place, and whoever reads has them beside the file.
"""

import sqlite3
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import create_engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import StaticPool

from kdx.store.refusals import DamagedDatabaseError
from kdx.store.schema import REVISION, VERSION_TABLE, among, create, is_object, now
from kdx.store.sqlite.file import foreign
from kdx.store.views import FINAL_STATE_TRIGGER, FINAL_STATES, VIEWS

_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"  # indices of keys have no text


@compiles(now, "sqlite")
def _now(element: now, compiler: Any, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(is_object, "sqlite")
def _is_object(element: is_object, compiler: Any, **options: Any) -> str:
    column = element.column
    return f"CASE WHEN json_valid({column}) THEN json_type({column}) = 'object' ELSE {column} IS NULL END"


@compiles(among, "sqlite")
def _among(element: among, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"({column} IN (SELECT value FROM json_each({values})))"


class SqliteDialect:
    """Implements `kdx.store.views.Dialect`. SQLite gives a value of JSON the type that it has there."""

    # Crossed, SQLite joins in this order; left to itself it may scan all runs for each cell.
    join = "CROSS JOIN"

    def parsed(self, column: str) -> str:
        return column

    def word(self, column: str, path: str) -> str:
        return f"json_extract({column}, '{_json_path(path)}')"

    whole = real = word

    def joined(self, column: str, path: str, separator: str) -> str:
        listed = f"SELECT group_concat(value, '{separator}') FROM json_each({column}, '{_json_path(path)}')"
        return f"coalesce(({listed}), 'none')"


def _json_path(path: str) -> str:
    return "$" + "".join(f'."{step}"' for step in path.split("."))


TRIGGER = (
    f"CREATE TRIGGER {FINAL_STATE_TRIGGER} BEFORE UPDATE OF state ON run "
    f"WHEN OLD.state IN {FINAL_STATES} AND NEW.state <> OLD.state "
    "BEGIN SELECT RAISE(ABORT, 'a run never leaves a final state'); END"
)


class _Object(NamedTuple):
    kind: str
    name: str
    statement: str


def refuse_foreign_objects(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Compare the schema with that of a new database, and return the names of its objects.

    It comes before anything else is asked of the file. SQLite takes names in any case for the same, so names are
    compared in one case. Tables and views of other names are welcome, since kdx asks nothing of them, as is any view
    under the name of a view.

    Raises:
        DatabaseError: what has a name of kdx is not what kdx makes under it, or there is another trigger.
        DamagedDatabaseError: something of kdx is missing.
    """
    there = {name.lower(): _Object(kind, name, _folded(sql)) for kind, name, sql in connection.execute(_OBJECTS)}
    known = _new()
    for name, item in there.items():
        expected = known.get(name)
        always = item.kind == "trigger" or name == VERSION_TABLE
        if (item != expected) if always else (expected and item.kind != expected.kind):
            raise foreign(path, f"its {item.kind} `{item.name[:60]}` is not one that kdx makes")
    if VERSION_TABLE not in there:
        return list(there)
    recorded = connection.execute(f"SELECT revision FROM {VERSION_TABLE}").fetchall()
    # What another schema has is not known here.
    if recorded == [(REVISION,)]:
        for name, expected in known.items():
            if expected.kind == "view":
                continue
            if name not in there:
                missing = f"the {expected.kind} {expected.name} is missing"
                raise DamagedDatabaseError(missing, place=str(path), hint="restore a backup")
            if there[name] != expected:
                raise foreign(path, f"its {expected.kind} `{there[name].name[:60]}` is not as kdx makes it")
    return list(there)


@cache
def _new() -> Mapping[str, _Object]:
    """Name → object, of a new database in memory."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        create(connection, (TRIGGER, *(view.statement(SqliteDialect()) for view in VIEWS)))
        rows = connection.exec_driver_sql(_OBJECTS).all()
    engine.dispose()
    return {name.lower(): _Object(kind, name, _folded(sql)) for kind, name, sql in rows}


def _folded(statement: str) -> str:
    """A statement without what differs between two that make the same: line breaks, and quotes around names."""
    return " ".join(statement.replace('"', "").split())
