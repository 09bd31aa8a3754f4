"""What completed runs cost: time, memory, and how many numbers they learned."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import and_, func, or_, select

from kdx.store.database import Database
from kdx.store.records import RunState
from kdx.store.schema import among, attempt, cell, metric, run, value_of

NEWEST = 2_000
"""Number of runs of other cells that are looked at, those that were planned last."""


class RunCost(NamedTuple):
    """What a completed run cost."""

    cell_id: str
    cell: str
    """The resolved cell, JSON."""
    steps: int
    """Optimiser steps that its attempts did, without those of a shorter run that it continued."""
    seconds: float
    """Wall time of its attempts."""
    peak_memory: int | None
    """Bytes; None: not recorded."""
    parameters: int | None
    """Numbers that training changed; None: not recorded."""


def costs(database: Database, cell_ids: Collection[str]) -> tuple[RunCost, ...]:
    """Every completed run of these cells, and the newest ones of others; those that ended first come first."""
    newest = select(run.c.id).where(run.c.state == RunState.COMPLETED).order_by(run.c.id.desc()).limit(NEWEST)
    which = and_(run.c.state == RunState.COMPLETED, or_(among(run.c.cell_id, cell_ids), run.c.id.in_(newest)))
    rows = (
        select(
            run.c.id,
            run.c.cell_id,
            (run.c.progress_step - func.coalesce(func.min(attempt.c.resumed_step), 0)).label("steps"),
            func.sum(attempt.c.ended - attempt.c.started).label("seconds"),
            func.max(attempt.c.peak_memory).label("peak_memory"),
        )
        .join_from(run, attempt, attempt.c.run_id == run.c.id)
        .where(which)
        .group_by(run.c.id)
        .order_by(func.max(attempt.c.ended))
    )
    learned = select(metric.c.run_id, metric.c.bits).where(
        metric.c.name == "model/parameters", metric.c.step == 0, metric.c.run_id.in_(select(run.c.id).where(which))
    )
    with database.read() as connection:
        completed = connection.execute(rows).all()
        needed = {row.cell_id for row in completed}
        specs = select(cell.c.id, cell.c.spec).where(among(cell.c.id, needed))
        parameters = {row.run_id: int(value_of(row.bits)) for row in connection.execute(learned)}
        texts = {row.id: row.spec for row in connection.execute(specs)}
    return tuple(
        RunCost(
            row.cell_id,
            texts[row.cell_id],
            row.steps,
            row.seconds,
            row.peak_memory,
            parameters.get(row.id),
        )
        for row in completed
        # A clock that was set back gives no time.
        if row.seconds and row.seconds > 0 and row.steps
    )
