"""Checks a whole results database without writing it."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isclose, isnan
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

from kdx.components.registry import know, meant_by
from kdx.grid.evaluations import settings_id
from kdx.grid.spec import CellSpec
from kdx.store.backend import DamagedDatabaseError
from kdx.store.columns import Holds, Json, Strict, UnexpectedValueError, checked
from kdx.store.components import component_id, recorded
from kdx.store.database import Database
from kdx.store.reading import texts_of, whole_cell
from kdx.store.recording import environment_id
from kdx.store.schema import (
    cell,
    component,
    environment,
    evaluation,
    evaluation_document,
    evaluation_metric,
    metadata,
    metric,
    output,
    run,
    test_document,
    value_of,
)
from kdx.store.views import VIEWS

MOST_FAULTS = 20
"""Largest number of faults of one kind that are reported."""

_SCORES = {"loss": ("nats", 1), "accuracy": ("right", 100)}
"""Metric → the quantity that is summed by document, and how many times its mean over targets the metric is."""

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
                forms = [*_forms(connection)]
                faults += [
                    *forms,
                    *_cells(connection),
                    *_components(connection),
                    *_texts(connection),
                    *_doubles(connection),
                ]
                if not forms:
                    faults += [*_hashed(connection), *_sums(connection)]
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


def _hashed(connection: Connection) -> Iterator[str]:
    """Describes rows whose content does not match the hash in their key."""
    for row in connection.execute(select(environment.c.id, environment.c.environment)):
        if environment_id(row.environment) != row.id:
            yield f"the environment {row.id} is not what its id is the hash of"
    of_cells = select(evaluation, cell.c.spec, cell.c.id.label("cell_id")).join(run, run.c.id == evaluation.c.run_id)
    know(filter(None, (recorded(row._mapping) for row in connection.execute(select(component)))))
    known: dict[str, CellSpec | None] = {}
    for row in connection.execute(of_cells.join(cell, cell.c.id == run.c.cell_id)):
        if row.cell_id not in known:
            known[row.cell_id] = None
            with suppress(UnexpectedValueError):  # such a cell is a fault of its own
                known[row.cell_id] = whole_cell(row.cell_id, row.spec).known
        spec = known[row.cell_id]
        with meant_by({} if spec is None else spec.components):
            matches = spec is None or settings_id(spec, row.settings) in (row.settings_id, None)
        if not matches:
            yield f"the settings of evaluation {row.id} of run {row.run_id} are not what their id is the hash of"


def _sums(connection: Connection) -> Iterator[str]:
    """Describes sums by document that do not add up to the score of the test."""
    of_runs = select(test_document.c.run_id, test_document.c.sums, metric.c.name, metric.c.bits).join(
        metric, metric.c.run_id == test_document.c.run_id
    )
    of_evaluations = select(
        evaluation_document.c.evaluation_id,
        evaluation_document.c.sums,
        evaluation_metric.c.name,
        evaluation_metric.c.bits,
    ).join(evaluation_metric, evaluation_metric.c.evaluation_id == evaluation_document.c.evaluation_id)
    for what, rows, prefix, name in (
        ("run", of_runs, "test/", metric.c.name),
        ("evaluation", of_evaluations, "", evaluation_metric.c.name),
    ):
        for key, sums, score, bits in connection.execute(rows.where(name.in_([f"{prefix}{one}" for one in _SCORES]))):
            quantity, times = _SCORES[score.removeprefix(prefix)]
            whole = value_of(bits) * sum(sums["targets"])
            if quantity in sums and not isclose(times * sum(sums[quantity]), whole, rel_tol=1e-6, abs_tol=1e-6):
                yield f"the sums by document of {what} {key} do not add up to its {score}"


def _components(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(component)):
        if recorded(row._mapping) is None or component_id(row.axis, row.word, row.sha256) != row.id:
            yield f"the source {row.sha256} of a component is not what that is the hash of"


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
