"""Checks a whole results database without writing it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from sqlalchemy import Connection, Text, func, select, type_coerce

from kdx.errors import DatabaseError, KdxError
from kdx.store.components import component_id, recorded
from kdx.store.database import Database, open_database
from kdx.store.json_object import JsonObject, UnexpectedJsonError
from kdx.store.reading import texts_of
from kdx.store.recorded_grid import check_grid, whole_cell
from kdx.store.refusals import DamagedDatabaseError
from kdx.store.schema import (
    cell,
    component,
    evaluation_metric,
    metadata,
    metric,
    output,
    run,
    sweep,
    value_of,
)

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
    """Check what SQL promises of pages, tables, values and references; then JSON, numbers, cells and texts.

    On SQLite, commits of other processes wait until it is done.
    """
    faults: list[str] = []
    rows: dict[str, int] = {}
    differing = 0
    try:
        with database.read() as connection:
            faults += database.faults(connection, MOST_FAULTS)
            if not faults:
                faults += unexpected_json(connection)
            if not faults:
                for contradictions in (_grids, edited_cells, _components, _texts, _numbers):
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


def unexpected_json(connection: Connection) -> Iterator[str]:
    """Describe JSON that kdx never writes."""
    for column in (column for table in metadata.sorted_tables for column in table.c):
        if not isinstance(column.type, JsonObject):
            continue
        count = 0
        texts = select(type_coerce(column, Text)).where(column.is_not(None))
        for text in connection.execute(texts, execution_options={"yield_per": AT_A_TIME}).scalars():
            try:
                column.type.read(text)
            except UnexpectedJsonError:
                count += 1
        if count:
            yield f"{count} rows of {column.table.name} have a {column.name} that kdx never writes"


def _grids(connection: Connection) -> Iterator[str]:
    for name, grid in connection.execute(select(sweep.c.name, sweep.c.grid)):
        try:
            check_grid(name, grid)
        except KdxError as error:
            yield error.problem


def edited_cells(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(cell.c.id, cell.c.spec)):
        try:
            whole_cell(row.id, row.spec)
        except DatabaseError:
            yield f"the cell {row.id} is not what its id is the hash of"


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


def _numbers(connection: Connection) -> Iterator[str]:
    """Describe numbers for queries that are not those whose bits are kept."""
    for number, bits in (
        (run.c.valid_score, run.c.valid_bits),
        (run.c.test_score, run.c.test_bits),
        (metric.c.value, metric.c.bits),
        (evaluation_metric.c.value, evaluation_metric.c.bits),
    ):
        kept = select(number, bits).where(bits.is_not(None))
        rows = connection.execute(kept, execution_options={"yield_per": AT_A_TIME})
        # SQLite has NULL for NaN.
        edited = sum(value != exact and not isnan(exact) for value, bits in rows for exact in [value_of(bits)])
        if edited:
            yield f"{edited} rows of {number.table.name} have a {number.name} that is not that of its bits"


def _count(connection: Connection, table: str) -> int:
    return connection.scalar(select(func.count()).select_from(metadata.tables[table])) or 0
