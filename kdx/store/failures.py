"""Reads how runs failed, and how much the processes that tried them have completed."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import and_, func, select

from kdx.store.database import Database
from kdx.store.records import FINAL, RunState
from kdx.store.schema import attempt, run


class FailureRecord(NamedTuple):
    """The last attempt of a run that failed and that nobody has tried again since."""

    run_id: int
    cell_id: str
    owner: str
    """The process that ran it, see `kdx.sweep.lease_holder`."""
    ended: float
    """Seconds since 1970, by the clock of the database."""
    error: str
    traceback: str | None
    """None where no exception ended it."""


def failures(database: Database, run_ids: Collection[int] | None = None) -> tuple[FailureRecord, ...]:
    """Every run that has failed, in the order of the failures.

    Args:
        run_ids: only of these runs; None: of any.
    """
    last = and_(attempt.c.run_id == run.c.id, attempt.c.number == run.c.attempt)
    rows = (
        select(run.c.id, run.c.cell_id, attempt.c.owner, attempt.c.ended, run.c.error, attempt.c.traceback)
        .join(attempt, last)
        .where(run.c.state == RunState.FAILED)
        .order_by(attempt.c.ended, run.c.id)
    )
    if run_ids is not None:
        rows = rows.where(run.c.id.in_(list(run_ids)))
    with database.read() as connection:
        return tuple(
            FailureRecord(row.id, row.cell_id, row.owner, row.ended or 0.0, row.error or "", row.traceback)
            for row in connection.execute(rows)
        )


def last_successes(database: Database, since: float) -> dict[str, float]:
    """Process → when a run of it last came to a final state, for processes of which one did since then.

    Args:
        since: seconds since 1970, by the clock of the database.
    """
    rows = (
        select(attempt.c.owner, func.max(attempt.c.ended).label("ended"))
        .where(attempt.c.ended >= since, attempt.c.outcome.in_(FINAL))
        .group_by(attempt.c.owner)
    )
    with database.read() as connection:
        return {row.owner: row.ended for row in connection.execute(rows)}
