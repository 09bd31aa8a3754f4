"""Checks a whole results database without writing it."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    case,
    func,
    inspect,
    literal_column,
    not_,
    select,
    type_coerce,
)
from sqlalchemy.types import NullType

from kdx.errors import DatabaseError
from kdx.store.components import component_id, recorded
from kdx.store.database import Database, open_database
from kdx.store.reading import texts_of, whole_cell
from kdx.store.recording import environment_id
from kdx.store.refusals import DamagedDatabaseError
from kdx.store.schema import (
    HOLDS,
    cell,
    component,
    environment,
    evaluation_metric,
    metadata,
    metric,
    output,
    run,
)
from kdx.store.views import VIEWS

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


def check(database: Database) -> Checked:
    """Checks pages, references, tables, what SQL promises of every value, and every hash that a row has of another.

    Commits of other processes wait until it is done.
    """
    faults: list[str] = []
    rows: dict[str, int] = {}
    differing = 0
    try:
        with database.read() as connection:
            faults += database.faults(connection, MOST_FAULTS)
            faults += _tables(connection)
            if not faults:
                faults += unwritten_values(connection)
            if not faults:
                for contradictions in (edited_cells, _components, _environments, _texts, _doubles):
                    faults += contradictions(connection)
                rows = {name: _count(connection, name) for name in sorted(metadata.tables)}
                differing = connection.scalar(select(func.count()).where(metric.c.differs > 0)) or 0
    except DamagedDatabaseError as error:
        faults.append(error.problem)
    return Checked(tuple(faults), rows, differing)


def look_through(address: str | Path) -> Checked:
    """Check a database, even one that is too damaged to open."""
    try:
        with open_database(address, write=False) as database:
            return check(database)
    except DamagedDatabaseError as error:
        return Checked((error.problem,), {}, 0)


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


def unwritten_values(connection: Connection) -> Iterator[str]:
    """Describes values that a CHECK of the schema forbids: a program can suspend it, or make the table without it."""
    for table in metadata.sorted_tables:
        checked = {name: column.info[HOLDS] for name, column in table.c.items() if HOLDS in column.info}
        broken = [func.coalesce(func.sum(case((not_(holds), 1), else_=0)), 0) for holds in checked.values()]
        counts = connection.execute(select(*broken).select_from(table)).one()
        for name, count in zip(checked, counts, strict=True):
            if count:
                yield f"{count} rows of {table.name} have a {name} that kdx never writes"


def edited_cells(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(cell.c.id, cell.c.spec)):
        try:
            whole_cell(row.id, row.spec)
        except DatabaseError:
            yield f"the cell {row.id} is not what its id is the hash of"


def _environments(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(environment.c.id, environment.c.environment)):
        if environment_id(row.environment) != row.id:
            yield f"the environment {row.id} is not what its id is the hash of"


def _components(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(component)):
        if recorded(row._mapping) is None or component_id(row.axis, row.word, row.sha256) != row.id:
            yield f"the source {row.sha256} of a component is not what that is the hash of"


def _texts(connection: Connection) -> Iterator[str]:
    for kept in connection.execute(select(output)):
        try:
            texts_of(kept)
        except DatabaseError:
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
