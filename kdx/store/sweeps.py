"""Reads the plans that sweeps have had, and removes sweeps."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, Table, and_, delete, exists, func, select

from kdx.store.database import Database
from kdx.store.reading import same_run
from kdx.store.records import PlanRecord, RunState, folder_name
from kdx.store.schema import (
    among,
    attempt,
    cell,
    metadata,
    plan,
    plan_cell,
    run,
    search,
    sweep,
    sweep_cell,
    sweep_run,
    sweep_search,
)


def history(database: Database, sweep_id: int) -> tuple[PlanRecord, ...]:
    """Return every plan of a sweep, the first one first; the sweep follows the last."""
    of_sweep = plan.c.sweep_id == sweep_id
    with database.read() as connection:
        rows = connection.execute(select(plan).where(of_sweep).order_by(plan.c.id)).all()
        cells: dict[int, list[str]] = defaultdict(list)
        for plan_id, cell_id in connection.execute(
            select(plan_cell.c.plan_id, plan_cell.c.cell_id).join(plan).where(of_sweep).order_by(plan_cell.c.cell_id)
        ):
            cells[plan_id].append(cell_id)
    return tuple(PlanRecord(row.id, row.made, row.grid, row.sources, tuple(cells[row.id])) for row in rows)


class Changed(Exception):
    """The sweep has changed since somebody agreed to remove it."""


@dataclass(frozen=True)
class Removal:
    """What goes with a sweep."""

    sweep_id: int
    name: str
    plans: int
    runs: tuple[tuple[int, str, str], ...]
    """Id, cell and name of the folder of each run that is removed."""
    kept: int
    """Runs of the sweep and of its searches that stay: other sweeps have them, or results are not to be removed."""
    seconds: float
    """Wall time of the attempts at the runs that are removed."""
    running: tuple[int, ...]
    """Ids of the runs of the sweep that some process works at."""

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The ids of the runs that are removed."""
        return tuple(run_id for run_id, *_ in self.runs)


def removal(database: Database, sweep_id: int, *, results: bool) -> Removal:
    """Return what `remove` would remove.

    Args:
        results: whether runs go too, in every generation, and the sweep's searches with their trials. A run stays if
            another sweep plans it, has planned it, or asks for its search. Without it only planned runs go that never
            started.
    """
    with database.read() as connection:
        return _removal(connection, sweep_id, results)


def remove(database: Database, shown: Removal, *, results: bool) -> None:
    """Remove a sweep with its plans and remarks, in one transaction; and runs, as `removal` says.

    Args:
        shown: what somebody agreed to.

    Raises:
        Changed: it is not what would be removed now.
    """
    with database.write() as connection:
        if _removal(connection, shown.sweep_id, results) != shown:
            raise Changed
        planned = select(sweep_cell.c.cell_id).where(sweep_cell.c.sweep_id == shown.sweep_id)
        cells = {*connection.scalars(planned), *(cell_id for _, cell_id, _ in shown.runs)}
        searched = select(sweep_search.c.search_id).where(sweep_search.c.sweep_id == shown.sweep_id)
        searches = list(connection.scalars(searched)) if results else []
        remove_rows(connection, sweep, sweep.c.id == shown.sweep_id)
        remove_rows(connection, run, among(run.c.id, shown.run_ids))
        remove_rows(connection, search, among(search.c.id, searches) & ~_refers(sweep_search.c.search_id, search.c.id))
        held = (_refers(column, cell.c.id) for column in _references_to(cell))
        remove_rows(connection, cell, and_(among(cell.c.id, cells), *(~reference for reference in held)))


def _removal(connection: Connection, sweep_id: int, results: bool) -> Removal:
    whole = [row for row in connection.execute(_runs_of(sweep_id)) if row.planned or row.search_id]
    gone = [row for row in whole if not row.shared and (results or not (row.attempt or row.search_id))]
    ids = [row.id for row in gone]
    seconds = select(func.sum(attempt.c.ended - attempt.c.started)).where(among(attempt.c.run_id, ids))
    return Removal(
        sweep_id=sweep_id,
        name=connection.scalar(select(sweep.c.name).where(sweep.c.id == sweep_id)) or "",
        plans=connection.scalar(select(func.count()).where(plan.c.sweep_id == sweep_id)) or 0,
        runs=tuple(
            (row.id, row.cell_id, folder_name(row.cell_id, row.seed, row.generation, row.search_id)) for row in gone
        ),
        kept=len(whole) - len(gone),
        seconds=connection.scalar(seconds) or 0.0,
        running=tuple(row.id for row in whole if row.state == RunState.RUNNING),
    )


def _runs_of(sweep_id: int) -> Select[tuple[int, str, int, int, str | None, RunState, int, bool, bool]]:
    """Select every generation of every run that the sweep plans or has planned, and every run of its searches."""
    planned = select(sweep_run.c.cell_id).where(sweep_run.c.sweep_id == sweep_id)
    searched = select(sweep_search.c.search_id).where(sweep_search.c.sweep_id == sweep_id)
    others = exists().where(same_run(run), sweep_run.c.sweep_id != sweep_id) | exists().where(
        sweep_search.c.search_id == run.c.search_id, sweep_search.c.sweep_id != sweep_id
    )
    return (
        select(
            run.c.id,
            run.c.cell_id,
            run.c.seed,
            run.c.generation,
            run.c.search_id,
            run.c.state,
            run.c.attempt,
            exists().where(same_run(run), sweep_run.c.sweep_id == sweep_id).label("planned"),
            others.label("shared"),
        )
        .where(run.c.cell_id.in_(planned) & run.c.search_id.is_(None) | run.c.search_id.in_(searched))
        .order_by(run.c.id)
    )


def _refers(column: ColumnElement[Any], to: ColumnElement[Any]) -> ColumnElement[bool]:
    return exists().where(column == to)


def _references_to(table: Table) -> list[Column[Any]]:
    """Return the columns, of all tables, that refer to rows of this one."""
    keys = (key for other in metadata.sorted_tables for key in other.foreign_keys)
    return [key.parent for key in keys if key.column.table is table]


def remove_rows(connection: Connection, table: Table, which: ColumnElement[bool]) -> None:
    """Remove these rows of a table, and before them every row that refers to one of them, as the schema says."""
    for reference in _references_to(table):
        remove_rows(connection, reference.table, reference.in_(select(table.c.id).where(which)))
    connection.execute(delete(table).where(which))
