"""Looks a whole results database through, without writing it."""

import hashlib
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, inspect, select

from kdx.store.database import DamagedDatabaseError, Database
from kdx.store.schema import FINAL_STATE_TRIGGER, VIEWS, metadata, metric, output

MOST_FAULTS = 20
"""Of the pages of a damaged file, so many are told."""


@dataclass(frozen=True)
class Checked:
    """What a database looked like, at one moment."""

    faults: tuple[str, ...]
    """What is wrong with it, a line each."""
    rows: Mapping[str, int]
    """Table → rows; empty where the file is too damaged to count."""
    differing: int
    """Numbers that a replay gave other bits than stood there."""
    wal: bool
    """Whether another program put it into WAL mode."""


def check(database: Database) -> Checked:
    """Pages, keys, tables, the trigger, and the checksum of every text that a run produced.

    What others commit waits until it is done.
    """
    faults: list[str] = []
    rows: dict[str, int] = {}
    differing, wal = 0, False
    try:
        with database.read() as connection:
            wal = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
            faults += _pages(connection)
            faults += _keys(connection)
            faults += _tables(connection)
            if not faults:
                faults += _texts(connection)
                rows = {name: _count(connection, name) for name in sorted(metadata.tables)}
                differing = connection.scalar(select(func.count()).where(metric.c.differs > 0)) or 0
    except DamagedDatabaseError as error:
        faults.append(error.problem)
    return Checked(tuple(faults), rows, differing, wal)


def has_wal_reset_bug(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Whether this SQLite can corrupt a file in WAL mode that several processes write [sqlite.org/wal.html]."""
    return (3, 7, 0) <= version < (3, 51, 3)


def _pages(connection: Connection) -> Iterator[str]:
    for line in connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_FAULTS})").scalars():
        if line != "ok":
            yield f"the file is damaged: {line}"


def _keys(connection: Connection) -> Iterator[str]:
    lost = Counter((row[0], row[2]) for row in connection.exec_driver_sql("PRAGMA foreign_key_check"))
    for (table, other), count in lost.items():
        yield f"{count} rows of {table} name a row of {other} that is not there"


def _tables(connection: Connection) -> Iterator[str]:
    there = inspect(connection)
    for name, table in metadata.tables.items():
        if not there.has_table(name):
            yield f"the table {name} is missing"
        elif missing := {column.name for column in table.c} - {column["name"] for column in there.get_columns(name)}:
            yield f"the table {name} lacks {', '.join(sorted(missing))}"
    views = there.get_view_names()
    yield from (f"the view {view.name} is missing" for view in VIEWS if view.name not in views)
    triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'run'"
    if FINAL_STATE_TRIGGER not in connection.exec_driver_sql(triggers).scalars().all():
        yield f"the trigger {FINAL_STATE_TRIGGER}, which keeps final states final, is missing"


def _texts(connection: Connection) -> Iterator[str]:
    for kept in connection.execute(select(output)):
        try:
            whole = hashlib.sha256(zlib.decompress(kept.lines)).hexdigest() == kept.sha256
        except zlib.error:
            whole = False
        if not whole:
            yield f"the texts {kept.name} of run {kept.run_id} do not match their checksum"


def _count(connection: Connection, table: str) -> int:
    return connection.scalar(select(func.count()).select_from(metadata.tables[table])) or 0
