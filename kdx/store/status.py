"""How far the runs of sweeps are, who works at them, and how long runs of each cell took."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import and_, case, func, select

from kdx.store.database import Database
from kdx.store.reading import is_newest
from kdx.store.records import RunState
from kdx.store.schema import attempt, now, run, sweep_cell, sweep_run


class WorkRecord(NamedTuple):
    """A run that some process works at."""

    sweep_id: int
    """A sweep that plans it; a run of several sweeps has a record for each."""
    run_id: int
    cell_id: str
    owner: str | None
    """See `kdx.sweep.lease_holder`."""
    lease_left: float | None
    """Seconds until the claim lapses, negative if it has."""
    step: int
    """The highest optimiser step that the database knows of."""
    running: float
    """Seconds since the claim."""


class CellTime(NamedTuple):
    """How long the runs of a cell took, and how many are still to be done."""

    sweep_id: int
    cell_id: str
    left: int
    """Runs that are pending, interrupted or running."""
    seconds: float | None
    """Mean wall time of its completed runs, in whichever sweep; where it has none, that of the sweep's other cells.
    None: no run of the sweep is completed."""


def work(database: Database) -> tuple[WorkRecord, ...]:
    """Every run that is claimed, in the order of the claims."""
    claim = and_(attempt.c.run_id == run.c.id, attempt.c.number == run.c.attempt)
    planned = and_(sweep_run.c.cell_id == run.c.cell_id, sweep_run.c.seed == run.c.seed, sweep_run.c.planned)
    rows = (
        select(
            sweep_run.c.sweep_id,
            run.c.id,
            run.c.cell_id,
            run.c.owner,
            run.c.lease_until - now(),
            run.c.progress_step,
            now() - attempt.c.started,
        )
        .join_from(run, attempt, claim)
        .join(sweep_run, planned)
        .where(run.c.state == RunState.RUNNING)
        .order_by(attempt.c.started, run.c.id)
    )
    with database.read() as connection:
        return tuple(WorkRecord(*row) for row in connection.execute(rows))


def times(database: Database, sweep_ids: Collection[int]) -> tuple[CellTime, ...]:
    """Each cell of these sweeps that has runs to be done, in the order of its id."""
    left = case((run.c.state.in_((RunState.PENDING, RunState.INTERRUPTED, RunState.RUNNING)), 1), else_=0)
    unfinished = (
        select(sweep_run.c.sweep_id, sweep_run.c.cell_id, func.sum(left).label("left"))
        .join(run, and_(sweep_run.c.cell_id == run.c.cell_id, sweep_run.c.seed == run.c.seed))
        .where(sweep_run.c.planned, sweep_run.c.sweep_id.in_(list(sweep_ids)), is_newest())
        .group_by(sweep_run.c.sweep_id, sweep_run.c.cell_id)
        .having(func.sum(left) > 0)
        .subquery()
    )
    cells = select(sweep_run.c.cell_id).where(sweep_run.c.sweep_id.in_(list(sweep_ids)))
    of_a_run = (
        select(run.c.cell_id, func.sum(attempt.c.ended - attempt.c.started).label("seconds"))
        .join(attempt, attempt.c.run_id == run.c.id)
        .where(run.c.state == RunState.COMPLETED, run.c.cell_id.in_(cells))
        .group_by(run.c.id, run.c.cell_id)
        .subquery()
    )
    took = (
        select(of_a_run.c.cell_id, func.avg(of_a_run.c.seconds).label("seconds"))
        .group_by(of_a_run.c.cell_id)
        .subquery()
    )
    rows = (
        select(unfinished.c.sweep_id, unfinished.c.cell_id, unfinished.c.left, took.c.seconds)
        .join(took, took.c.cell_id == unfinished.c.cell_id, isouter=True)
        .order_by(unfinished.c.sweep_id, unfinished.c.cell_id)
    )
    # A cell without completed runs has none to compare with but the sweep's others.
    others = (
        select(sweep_run.c.sweep_id, func.avg(took.c.seconds))
        .join(took, took.c.cell_id == sweep_run.c.cell_id)
        .where(sweep_run.c.sweep_id.in_(list(sweep_ids)), sweep_run.c.planned)
        .group_by(sweep_run.c.sweep_id)
    )
    with database.read() as connection:
        mean = {row[0]: row[1] for row in connection.execute(others)}
        found = connection.execute(rows).all()
    return tuple(
        CellTime(row.sweep_id, row.cell_id, row.left, mean.get(row.sweep_id) if row.seconds is None else row.seconds)
        for row in found
    )


def labels_of(database: Database, sweep_id: int) -> dict[str, Mapping[str, str]]:
    """Cell id → its choices as the grid words them, for each planned cell in the order of the plan."""
    rows = (
        select(sweep_cell.c.cell_id, sweep_cell.c.labels)
        .where(sweep_cell.c.sweep_id == sweep_id, sweep_cell.c.planned)
        .order_by(sweep_cell.c.ordinal.desc())
    )
    with database.read() as connection:
        # Of two choices that come to one cell the first stays.
        found = {row.cell_id: row.labels for row in connection.execute(rows)}
    return dict(reversed(found.items()))
