"""Checks a whole results database without writing it."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    Text,
    and_,
    cast,
    false,
    func,
    inspect,
    literal_column,
    not_,
    select,
    type_coerce,
)
from sqlalchemy.types import NullType

from kdx.own_parts.part import hash_of
from kdx.store.backend import DamagedDatabaseError
from kdx.store.columns import Holds, Json, Strict, UnexpectedValueError, checked
from kdx.store.database import Database
from kdx.store.reading import texts_of, whole_cell
from kdx.store.schema import VIEWS, cell, evaluation_metric, metadata, metric, output, part, run

MOST_FAULTS = 20
"""Largest number of faults of one kind that are reported."""

AT_A_TIME = 1000
"""Number of rows that are held in memory at once."""


@dataclass(frozen=True)
class Checked:
    """The result of checking a database."""

    faults: tuple[str, ...]
    """Descriptions of the faults, one line each."""
    rows: Mapping[str, int]
    """Table → number of rows; empty where the file is too damaged to count."""
    differing: int
    """Number of metrics for which a replay gave other bits than were recorded."""
    mode: str | None
    """The mode that another program set, such as wal, which opening to write undoes; None if it is the mode of kdx."""


def check(database: Database) -> Checked:
    """Checks pages, references, tables, every value of every row, and the checksum of every text that a run produced.

    Commits of other processes wait until it is done.
    """
    faults: list[str] = []
    rows: dict[str, int] = {}
    differing, mode = 0, None
    try:
        with database.read() as connection:
            mode = database.backend.stray_mode(connection)
            faults += database.backend.faults(connection, MOST_FAULTS)
            faults += _tables(connection)
            if not faults:
                faults += _values(connection)
            if not faults:
                faults += [
                    *_forms(connection),
                    *_cells(connection),
                    *_parts(connection),
                    *_texts(connection),
                    *_doubles(connection),
                ]
                rows = {name: _count(connection, name) for name in sorted(metadata.tables)}
                differing = connection.scalar(select(func.count()).where(metric.c.differs > 0)) or 0
    except DamagedDatabaseError as error:
        faults.append(error.problem)
    return Checked(tuple(faults), rows, differing, mode)


def _tables(connection: Connection) -> Iterator[str]:
    inspector = inspect(connection)
    for name, table in metadata.tables.items():
        if not inspector.has_table(name):
            yield f"the table {name} is missing"
        elif missing := {column.name for column in table.c} - set(_columns(connection, table)):
            yield f"the table {name} lacks {', '.join(sorted(missing))}"
    views = inspector.get_view_names()
    yield from (f"the view {view.name} is missing" for view in VIEWS if view.name not in views)


def _columns(connection: Connection, table: Table) -> Iterable[str]:
    # Not by the inspector, which reads JSON in its own way.
    return connection.execute(select(literal_column("*")).select_from(table).limit(0)).keys()


def _values(connection: Connection) -> Iterator[str]:
    """Describes values that kdx never writes in their column."""
    for table in metadata.tables.values():
        # Read without their types, which would refuse wrong values.
        columns: list[ColumnElement[Any]] = [
            type_coerce(column, NullType()).label(column.name) for column in table.primary_key
        ]
        holds = {column.name: Holds(column.name, column.type) for column in table.c if isinstance(column.type, Strict)}
        for name, condition in holds.items():
            columns.append(func.coalesce(condition, false()).label(f"{name}_holds"))
            columns.append(func.substr(cast(table.c[name], Text), 1, 40).label(f"{name}_shown"))
        whole = func.coalesce(and_(*holds.values()), false())
        broken = select(*columns).select_from(table).where(not_(whole)).limit(MOST_FAULTS)
        for row in connection.execute(broken):
            values = row._mapping
            for name in holds:
                if not values[f"{name}_holds"]:
                    yield f"{table.name}.{name} is {values[f'{name}_shown']!r} where {_key_of(table, values)}"


def _key_of(table: Table, values: Mapping[Any, Any]) -> str:
    return ", ".join(f"{column.name} is {str(values[column.name])[:40]!r}" for column in table.primary_key)


def _forms(connection: Connection) -> Iterator[str]:
    """Describes JSON that does not have the form of its column."""
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


def _parts(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(part.c.sha256, part.c.sources)):
        if hash_of(row.sources) != row.sha256:
            yield f"the source {row.sha256} of a part is not what that is the hash of"


def _texts(connection: Connection) -> Iterator[str]:
    for kept in connection.execute(select(output)):
        try:
            texts_of(kept)
        except UnexpectedValueError:
            yield f"the texts {kept.name} of run {kept.run_id} do not match their checksum"


def _doubles(connection: Connection) -> Iterator[str]:
    """Describes numbers whose value and bits differ."""
    for column, bits in (
        (metric.c.value, metric.c.bits),
        (run.c.valid_score, run.c.valid_bits),
        (run.c.test_score, run.c.test_bits),
        (evaluation_metric.c.value, evaluation_metric.c.bits),
    ):
        # Read without their types, which would take several times as long.
        pair: list[ColumnElement[Any]] = [type_coerce(one, NullType()) for one in (column, bits)]
        without = select(func.count()).where(bits.is_(None), column.is_not(None))
        count = connection.scalar(without) or 0
        for rows in connection.execute(select(*pair).where(bits.is_not(None))).yield_per(AT_A_TIME).partitions():
            doubles = array("d", array("q", [pattern for _, pattern in rows]).tobytes())
            count += sum(
                # NaN may be stored as NULL.
                not (isnan(double) and (number is None or isnan(number)))
                for (number, _), double in zip(rows, doubles, strict=True)
                if number != double
            )
        if count:
            yield f"{count} rows of {column.table.name} have another number as {column.name} than as {bits.name}"


def _count(connection: Connection, table: str) -> int:
    return connection.scalar(select(func.count()).select_from(metadata.tables[table])) or 0
