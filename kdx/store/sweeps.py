"""Renames sweeps, and removes them."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, exists, func, select, update

from kdx.store.database import Database
from kdx.store.recording import remove_runs
from kdx.store.records import RunState
from kdx.store.schema import (
    attempt,
    cell,
    cell_migration,
    note,
    plan,
    plan_cell,
    run,
    sweep,
    sweep_cell,
    sweep_run,
    tag,
)


class NameTaken(Exception):
    """Another sweep has the name."""


class Changed(Exception):
    """The sweep is no longer what somebody was shown before it was to be removed."""


@dataclass(frozen=True)
class Removal:
    """What goes with a sweep."""

    sweep_id: int
    name: str
    plans: int
    runs: tuple[tuple[int, str, int, int], ...]
    """Id, cell, seed and generation of each run that is removed."""
    never_started: int
    """How many of these nobody ever claimed."""
    kept: int
    """Runs of the sweep that stay: other sweeps have them, or results are not to be removed."""
    seconds: float
    """Wall time of the attempts at the runs that are removed."""
    running: tuple[int, ...]
    """Ids of the runs of the sweep that some process works at."""

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The ids of the runs that are removed."""
        return tuple(run_id for run_id, *_ in self.runs)


def rename(database: Database, sweep_id: int, name: str) -> None:
    """Gives a sweep another name.

    Raises:
        NameTaken: another sweep has it.
    """
    with database.write() as connection:
        if connection.scalar(select(sweep.c.id).where(sweep.c.name == name)) is not None:
            raise NameTaken
        connection.execute(update(sweep).where(sweep.c.id == sweep_id).values(name=name))


def removal(database: Database, sweep_id: int, *, results: bool) -> Removal:
    """What `remove` would remove.

    Args:
        results: whether runs go too, in every generation. A run stays if another sweep plans it, or has planned it.
            Without it only those go that never started.
    """
    with database.read() as connection:
        return _removal(connection, sweep_id, results)


def remove(database: Database, shown: Removal, *, results: bool) -> None:
    """Removes a sweep with its plans and remarks, in one transaction; and runs, as `removal` says.

    Args:
        shown: what somebody agreed to.

    Raises:
        Changed: it is not what would be removed now.
    """
    with database.write() as connection:
        if _removal(connection, shown.sweep_id, results) != shown:
            raise Changed
        cells = select(sweep_cell.c.cell_id).where(sweep_cell.c.sweep_id == shown.sweep_id)
        of_sweep = set(connection.scalars(cells.distinct()))
        plans = select(plan.c.id).where(plan.c.sweep_id == shown.sweep_id)
        connection.execute(delete(plan_cell).where(plan_cell.c.plan_id.in_(plans)))
        for table in (plan, sweep_cell, sweep_run, note, tag):
            connection.execute(delete(table).where(table.c.sweep_id == shown.sweep_id))
        connection.execute(delete(sweep).where(sweep.c.id == shown.sweep_id))
        remove_runs(connection, shown.run_ids)
        _remove_unused(connection, of_sweep)


def _removal(connection: Connection, sweep_id: int, results: bool) -> Removal:
    whole = connection.execute(_runs_of(sweep_id).order_by(run.c.id)).all()
    never = {row.id for row in whole if not row.attempt}
    gone = [row for row in whole if not row.shared and (results or row.id in never)]
    ids = [row.id for row in gone]
    seconds = select(func.sum(attempt.c.ended - attempt.c.started)).where(attempt.c.run_id.in_(ids))
    return Removal(
        sweep_id=sweep_id,
        name=connection.scalar(select(sweep.c.name).where(sweep.c.id == sweep_id)) or "",
        plans=connection.scalar(select(func.count()).where(plan.c.sweep_id == sweep_id)) or 0,
        runs=tuple((row.id, row.cell_id, row.seed, row.generation) for row in gone),
        never_started=sum(row.id in never for row in gone),
        kept=len(whole) - len(gone),
        seconds=connection.scalar(seconds) or 0.0,
        running=tuple(row.id for row in whole if row.state == RunState.RUNNING),
    )


def _runs_of(sweep_id: int) -> Select[tuple[int, str, int, int, RunState, int, bool]]:
    """Every generation of every run that the sweep plans or has planned."""
    other = sweep_run.alias()
    shared = exists().where(other.c.cell_id == run.c.cell_id, other.c.seed == run.c.seed, other.c.sweep_id != sweep_id)
    return select(
        run.c.id, run.c.cell_id, run.c.seed, run.c.generation, run.c.state, run.c.attempt, shared.label("shared")
    ).join(sweep_run, and_(*_same_run(), sweep_run.c.sweep_id == sweep_id))


def _same_run() -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return sweep_run.c.cell_id == run.c.cell_id, sweep_run.c.seed == run.c.seed


def _remove_unused(connection: Connection, cell_ids: Collection[str]) -> None:
    """Removes those of these cells that no sweep, no plan and no run has any more, with what they were called once."""
    unused = (~exists().where(table.c.cell_id == cell.c.id) for table in (run, sweep_cell, sweep_run, plan_cell))
    gone = list(connection.scalars(select(cell.c.id).where(cell.c.id.in_(list(cell_ids)), *unused)))
    connection.execute(delete(cell_migration).where(cell_migration.c.cell_id.in_(gone)))
    connection.execute(delete(cell).where(cell.c.id.in_(gone)))
