"""Looks a whole results database through, without writing it."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, Text, cast, func, inspect, select

from kdx.store.columns import Json, Strict, UnexpectedValueError, checked
from kdx.store.database import DamagedDatabaseError, Database, driver_of
from kdx.store.reading import texts_of, whole_cell
from kdx.store.schema import FINAL_STATE_TRIGGER, VIEWS, cell, metadata, metric, output, value_of

MOST_FAULTS = 20
"""Of one kind, so many are told."""


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
    """Pages, keys, tables, the trigger, every value of every row, and the checksum of every text that a run produced.

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
                faults += _values(connection)
            if not faults:
                faults += [*_forms(connection), *_cells(connection), *_texts(connection), *_doubles(connection)]
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


def _values(connection: Connection) -> Iterator[str]:
    """Values that stand where kdx writes no such ones."""
    for table in metadata.tables.values():
        holds = {one.name: f"({one.type.holds(one.name)})" for one in table.c if isinstance(one.type, Strict)}
        # As they are: to read them by their types would refuse them.
        columns = [column.name for column in table.primary_key]
        for name, condition in holds.items():
            columns.append(f"coalesce({condition}, 0) AS {name}_holds")
            columns.append(f"substr(CAST({name} AS TEXT), 1, 40) AS {name}_shown")
        broken = f"NOT coalesce({' AND '.join(holds.values())}, 0)"
        asked = f"SELECT {', '.join(columns)} FROM {table.name} WHERE {broken} LIMIT {MOST_FAULTS}"
        for row in connection.exec_driver_sql(asked):
            values = row._mapping
            for name in holds:
                if not values[f"{name}_holds"]:
                    yield f"{table.name}.{name} is {values[f'{name}_shown']!r} where {_key_of(table, values)}"


def _key_of(table: Table, values: Mapping[Any, Any]) -> str:
    return ", ".join(f"{column.name} is {str(values[column.name])[:40]!r}" for column in table.primary_key)


def _forms(connection: Connection) -> Iterator[str]:
    """JSON that is not of the form which its column is to have."""
    for table in metadata.tables.values():
        for column in table.c:
            if not isinstance(column.type, Json):
                continue
            for row in connection.execute(select(*table.primary_key, cast(column, Text)).where(column.is_not(None))):
                try:
                    checked(column, row[-1])
                except UnexpectedValueError as error:
                    yield f"{error.column} is {error.value} where {_key_of(table, row._mapping)}"


def _cells(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(cell.c.id, cell.c.spec)):
        try:
            whole_cell(row.id, row.spec)
        except UnexpectedValueError:
            yield f"the cell {row.id} is not what its id is the hash of"


def _texts(connection: Connection) -> Iterator[str]:
    for kept in connection.execute(select(output)):
        try:
            texts_of(kept)
        except UnexpectedValueError:
            yield f"the texts {kept.name} of run {kept.run_id} do not match their checksum"


def _doubles(connection: Connection) -> Iterator[str]:
    """Numbers that are queried as one and trusted as another."""
    driver_of(connection).create_function("double_of", 1, _double_of, deterministic=True)
    for table, number, bits in (
        ("metric", "value", "bits"),
        ("run", "valid_score", "valid_bits"),
        ("run", "test_score", "test_bits"),
    ):
        apart = f"SELECT count(*) FROM {table} WHERE {number} IS NOT double_of({bits})"
        if count := connection.exec_driver_sql(apart).scalar_one():
            yield f"{count} rows of {table} have another number as {number} than as {bits}"


def _double_of(bits: int | None) -> float | None:
    return None if bits is None else value_of(bits)


def _count(connection: Connection, table: str) -> int:
    return connection.scalar(select(func.count()).select_from(metadata.tables[table])) or 0
