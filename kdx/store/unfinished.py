"""Reads runs that are not finished: which wait or failed, how, and where they were computed last."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import and_, or_, select

from kdx.store.database import Database
from kdx.store.reading import is_newest, records
from kdx.store.records import RunRecord, RunState
from kdx.store.schema import among, attempt, now, run, sweep_run


class InProgress(NamedTuple):
    """A run that was computed up to some step."""

    conditions: tuple[str, str | None]
    """Id of the environment and fingerprint of the data of its last computation, which decide the bits of a run beside
    its cell and its seed. The same conditions may have several values, one for each machine."""
    owner: str
    """The process that computed it last, see `kdx.sweep.lease_holder`."""
    waited: float
    """Seconds since then, by the clock of the database."""
    refusals: Mapping[str, str]
    """Process that tried to resume it since, and refused → what was different there, such as `torch 2.12 → 2.13`."""


def halted(database: Database, sweep_ids: Collection[int]) -> dict[int, tuple[RunRecord, ...]]:
    """Return sweep → its planned runs that failed or wait to be resumed; sweeps without any are left out.

    All are of the newest generation. Of a sweep with many runs these are few, so the others are not read.
    """
    started = and_(run.c.state == RunState.PENDING, run.c.attempt > 0)
    stopped = or_(run.c.state.in_((RunState.FAILED, RunState.INTERRUPTED)), started)
    ids = select(run.c.id).where(stopped, run.c.search_id.is_(None), is_newest())
    with database.read() as connection:
        halted_runs = records(connection, run.c.id.in_(ids))
        planned = select(sweep_run.c.sweep_id, sweep_run.c.cell_id, sweep_run.c.seed).where(
            sweep_run.c.sweep_id.in_(list(sweep_ids)),
            among(sweep_run.c.cell_id, {record.cell_id for record in halted_runs}),
            sweep_run.c.planned,
        )
        sweeps_of: dict[tuple[str, int], list[int]] = defaultdict(list)
        for row in connection.execute(planned) if halted_runs else ():
            sweeps_of[row.cell_id, row.seed].append(row.sweep_id)
    by_sweep: dict[int, list[RunRecord]] = defaultdict(list)
    for record in halted_runs:
        for sweep_id in sweeps_of.get((record.cell_id, record.seed), ()):
            by_sweep[sweep_id].append(record)
    return {sweep_id: tuple(runs_of_sweep) for sweep_id, runs_of_sweep in by_sweep.items()}


def in_progress(database: Database, run_ids: Collection[int]) -> dict[int, InProgress]:
    """Return run id → where it was computed last, for those of these runs that started."""
    rows = (
        select(
            attempt.c.run_id,
            attempt.c.owner,
            attempt.c.environment_id,
            attempt.c.ended,
            attempt.c.changes,
            run.c.environment_id.label("last_environment_id"),
            run.c.data_fingerprint,
            run.c.lease_until,
            now().label("now"),
        )
        .join(run, run.c.id == attempt.c.run_id)
        .where(among(attempt.c.run_id, run_ids), run.c.environment_id.is_not(None))
        .order_by(attempt.c.run_id, attempt.c.number)
    )
    runs: dict[int, InProgress] = {}
    refusals: dict[int, dict[str, str]] = defaultdict(dict)
    with database.read() as connection:
        for row in connection.execute(rows):
            if row.environment_id is not None:
                until = row.ended if row.ended is not None else row.lease_until
                waited = max(0.0, row.now - until) if until is not None else 0.0
                conditions = row.last_environment_id, row.data_fingerprint
                refusals[row.run_id] = {}
                runs[row.run_id] = InProgress(conditions, row.owner, waited, refusals[row.run_id])
            elif row.changes is not None:
                refusals[row.run_id][row.owner] = row.changes
    return runs


def tracebacks(database: Database, run_ids: Collection[int]) -> dict[int, str | None]:
    """Return run id → the traceback with which its last attempt ended, None where no exception ended it.

    The runs are in the order in which they ended.
    """
    last = and_(attempt.c.run_id == run.c.id, attempt.c.number == run.c.attempt)
    rows = select(run.c.id, attempt.c.traceback).join(attempt, last).where(among(run.c.id, run_ids))
    with database.read() as connection:
        return {row.id: row.traceback for row in connection.execute(rows.order_by(attempt.c.ended, run.c.id))}
