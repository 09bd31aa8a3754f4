"""How far the runs of sweeps are: who works at them, which wait or failed, how long they took, and what they cost."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from math import isfinite, nan
from typing import Any, NamedTuple

from sqlalchemy import and_, func, or_, select

from kdx.store.database import Database
from kdx.store.reading import is_newest, records, same_run
from kdx.store.recorded_grid import whole_cell
from kdx.store.records import ENDED, RunRecord, RunState
from kdx.store.schema import (
    among,
    attempt,
    cell,
    environment,
    metric,
    now,
    run,
    sweep_cell,
    sweep_run,
    sweep_search,
    value_of,
)

SAMPLED = 2_000
"""Number of completed runs of a database, at least, that say how long runs take."""
NEWEST = 2_000
"""Number of completed runs of other cells of which the cost is read, those that were planned last."""


class WorkRecord(NamedTuple):
    """A run that some process works at."""

    sweep_id: int
    """A sweep that plans it, or asks for its search; a run of several sweeps has a record for each."""
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
    device: str | None = None
    """Such as `cpu` or the name of a GPU; None if the run has not started."""
    gpu: str | None = None
    """The GPU that it was given, as in `CUDA_VISIBLE_DEVICES`; None: none in particular."""
    of_trial: bool = False
    """Whether it is a run of a trial."""


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
    # Found first, since they are few: the other way round, each planned run would be looked up.
    running = select(run).where(run.c.state == RunState.RUNNING).cte("running").prefix_with("MATERIALIZED")
    searched = select(sweep_search.c.sweep_id, sweep_search.c.search_id).distinct().subquery()
    sweeps = (
        (sweep_run, and_(same_run(running), sweep_run.c.planned)),
        (searched, searched.c.search_id == running.c.search_id),
    )
    records = []
    with database.read() as connection:
        for asking, asks in sweeps:
            claims = (
                select(
                    attempt.c.started,
                    asking.c.sweep_id,
                    running.c.id,
                    running.c.cell_id,
                    running.c.owner,
                    running.c.lease_until - now(),
                    running.c.progress_step,
                    now() - attempt.c.started,
                    environment.c.environment,
                )
                .join_from(running, asking, asks)
                .join(attempt, and_(attempt.c.run_id == running.c.id, attempt.c.number == running.c.attempt))
                .outerjoin(environment, environment.c.id == attempt.c.environment_id)
            )
            for started, *claim, facts in connection.execute(claims):
                where = [(facts or {}).get(name) for name in ("device", "gpu")]
                records.append((started, WorkRecord._make([*claim, *where, asking is searched])))
    # Not by how long they run: each row is read at a time of its own.
    records.sort(key=lambda claimed: (claimed[0], claimed[1].run_id))
    return tuple(record for _, record in records)


def times(database: Database, sweep_ids: Collection[int]) -> tuple[CellTime, ...]:
    """Each cell of these sweeps that has runs to be done, in the order of its id.

    Of many completed runs an even sample says how long they took.
    """
    sweeps = list(sweep_ids)
    # Found first, as above.
    unfinished = (
        select(run.c.cell_id, run.c.seed, run.c.search_id)
        .where(run.c.state.not_in(ENDED), is_newest())
        .cte("unfinished")
        .prefix_with("MATERIALIZED")
    )
    left = (
        select(sweep_run.c.sweep_id, unfinished.c.cell_id)
        .join_from(unfinished, sweep_run, same_run(unfinished))
        .where(sweep_run.c.planned, sweep_run.c.sweep_id.in_(sweeps))
    )
    completed = run.c.state == RunState.COMPLETED
    with database.read() as connection:
        # Counted here, for a database sorts them first, which takes twice as long as to find them.
        unfinished_runs = Counter(map(tuple, connection.execute(left)))
        runs = connection.scalar(select(func.count()).select_from(run).where(completed)) or 0
        sampled = (
            select(run.c.cell_id, func.sum(attempt.c.ended - attempt.c.started).label("seconds"))
            .join(attempt, attempt.c.run_id == run.c.id)
            .where(completed, run.c.id % max(1, runs // SAMPLED) == 0)
            .group_by(run.c.id, run.c.cell_id)
        )
        took: dict[str, list[float]] = defaultdict(list)
        for row in connection.execute(sampled):
            if row.seconds is not None:
                took[row.cell_id].append(row.seconds)
        planned = select(sweep_cell.c.sweep_id, sweep_cell.c.cell_id).where(
            sweep_cell.c.sweep_id.in_(sweeps), among(sweep_cell.c.cell_id, took), sweep_cell.c.planned
        )
        # Two choices of a sweep may come to one cell.
        cells = {(row.sweep_id, row.cell_id) for row in connection.execute(planned)}
    seconds = {cell_id: sum(each) / len(each) for cell_id, each in took.items()}
    # A cell without completed runs has none to compare with but the sweep's others.
    others: dict[int, list[float]] = defaultdict(list)
    for sweep_id, cell_id in cells:
        others[sweep_id].append(seconds[cell_id])
    means = {sweep_id: sum(each) / len(each) for sweep_id, each in others.items()}
    return tuple(
        CellTime(sweep_id, cell_id, left, seconds.get(cell_id, means.get(sweep_id)))
        for (sweep_id, cell_id), left in sorted(unfinished_runs.items())
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
        labels = {row.cell_id: row.labels for row in connection.execute(rows)}
    return dict(reversed(labels.items()))


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


class RunCost(NamedTuple):
    """What a completed run cost."""

    cell_id: str
    cell: Mapping[str, Any]
    """Every field of the resolved cell."""
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
        counts = {row.run_id: value_of(row.bits) for row in connection.execute(learned)}
        cells = {row.id: whole_cell(row.id, row.spec).plain for row in connection.execute(specs).all()}
    return tuple(
        RunCost(
            row.cell_id,
            cells[row.cell_id],
            row.steps,
            row.seconds,
            row.peak_memory,
            int(counts[row.id]) if isfinite(counts.get(row.id, nan)) else None,
        )
        for row in completed
        # A clock that was set back gives no time.
        if row.seconds and row.seconds > 0 and row.steps
    )
