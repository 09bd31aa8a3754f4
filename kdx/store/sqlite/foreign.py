"""Refuses SQLite files from elsewhere in which a view answers, or a trigger acts, in place of kdx."""

import sqlite3
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from kdx.store.creating import create
from kdx.store.refusals import DamagedDatabaseError
from kdx.store.sqlite.dialect import TRIGGER, VIEW_STATEMENTS
from kdx.store.sqlite.file import foreign
from kdx.store.version import REVISION, VERSION_TABLE

_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"  # indices of keys have no text


class _Object(NamedTuple):
    kind: str
    name: str
    statement: str


def refuse_foreign_objects(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Compare the schema with that of a new database, and return the names of its objects.

    It comes before anything else is asked of the file. SQLite takes names in any case for the same, so names are
    compared in one case. Tables and views of other names are welcome, since kdx asks nothing of them.

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
            if name not in there:
                missing = f"the {expected.kind} {expected.name} is missing"
                raise DamagedDatabaseError(missing, place=str(path), hint="take it back from a copy")
            if there[name] != expected:
                raise foreign(path, f"its {expected.kind} `{there[name].name[:60]}` is not as kdx makes it")
    return list(there)


@cache
def _new() -> Mapping[str, _Object]:
    """Name → object, of a new database in memory."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        create(connection, (TRIGGER, *VIEW_STATEMENTS))
        rows = connection.exec_driver_sql(_OBJECTS).all()
    engine.dispose()
    return {name.lower(): _Object(kind, name, _folded(sql)) for kind, name, sql in rows}


def _folded(statement: str) -> str:
    """A statement without what differs between two that make the same: line breaks, and quotes around names."""
    return " ".join(statement.replace('"', "").split())
