"""Reads how runs failed."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import and_, select

from kdx.store.database import Database
from kdx.store.records import RunState
from kdx.store.schema import attempt, run


class FailureRecord(NamedTuple):
    """The last attempt of a run that failed and that nobody has tried again since."""

    run_id: int
    cell_id: str
    error: str
    traceback: str | None
    """None where no exception ended it."""
    search_id: str | None = None
    """The search whose trial it is of; None if sweeps plan it."""


def failures(database: Database, run_ids: Collection[int]) -> tuple[FailureRecord, ...]:
    """Return the failures of those of these runs that failed, in the order in which they ended."""
    last = and_(attempt.c.run_id == run.c.id, attempt.c.number == run.c.attempt)
    rows = (
        select(run.c.id, run.c.cell_id, run.c.error, attempt.c.traceback, run.c.search_id)
        .join(attempt, last)
        .where(run.c.state == RunState.FAILED, run.c.id.in_(list(run_ids)))
        .order_by(attempt.c.ended, run.c.id)
    )
    with database.read() as connection:
        return tuple(
            FailureRecord(row.id, row.cell_id, row.error or "", row.traceback, row.search_id)
            for row in connection.execute(rows)
        )
