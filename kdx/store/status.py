"""How far the runs of sweeps are, who works at them, and how long runs of each cell took."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_, func, select

from kdx.store.database import Database
from kdx.store.reading import is_newest, same_run
from kdx.store.records import RunState
from kdx.store.schema import among, attempt, environment, now, run, sweep_cell, sweep_run, sweep_search

UNFINISHED = (RunState.PENDING, RunState.INTERRUPTED, RunState.RUNNING)
SAMPLED = 2_000
"""Number of completed runs of a database, at least, that say how long runs take."""


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
    claim = and_(attempt.c.run_id == running.c.id, attempt.c.number == running.c.attempt)
    columns = (
        running.c.id,
        running.c.cell_id,
        running.c.owner,
        running.c.lease_until - now(),
        running.c.progress_step,
        (now() - attempt.c.started).label("running"),
        attempt.c.environment_id,
    )
    planned = (
        select(sweep_run.c.sweep_id, *columns)
        .join_from(running, attempt, claim)
        .join(sweep_run, and_(same_run(running), sweep_run.c.planned))
    )
    searched = select(sweep_search.c.sweep_id, sweep_search.c.search_id).distinct().subquery()
    tried = (
        select(searched.c.sweep_id, *columns)
        .join_from(running, attempt, claim)
        .join(searched, searched.c.search_id == running.c.search_id)
    )
    with database.read() as connection:
        records = _with_devices(connection, connection.execute(planned).all(), of_trial=False)
        records += _with_devices(connection, connection.execute(tried).all(), of_trial=True)
    return tuple(sorted(records, key=lambda record: (-record.running, record.run_id)))


def _with_devices(connection: Connection, rows: Collection[Row[Any]], *, of_trial: bool) -> list[WorkRecord]:
    """Rows of claims, of which the last column is an id of an environment, as records."""
    ids = {row.environment_id for row in rows} - {None}
    of_these = select(environment).where(environment.c.id.in_(ids))
    facts = {row.id: row.environment for row in connection.execute(of_these)} if ids else {}
    records = []
    for row in rows:
        claim: list[Any] = list(row)
        known = facts.get(claim.pop(), {})
        record = WorkRecord(*claim)
        records.append(record._replace(device=known.get("device"), gpu=known.get("gpu"), of_trial=of_trial))
    return records


def times(database: Database, sweep_ids: Collection[int]) -> tuple[CellTime, ...]:
    """Each cell of these sweeps that has runs to be done, in the order of its id.

    Of many completed runs an even sample says how long they took.
    """
    sweeps = list(sweep_ids)
    # Found first, as above.
    unfinished = (
        select(run.c.cell_id, run.c.seed, run.c.search_id)
        .where(run.c.state.in_(UNFINISHED), is_newest())
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
