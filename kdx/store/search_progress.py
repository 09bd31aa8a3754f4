"""How far the searches of sweeps are, who works at their trials, and how long those took."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import and_, func, select

from kdx.store.database import Database
from kdx.store.records import RunState, TrialState
from kdx.store.schema import attempt, now, run, search, sweep_run, sweep_search, trial
from kdx.store.status import WorkRecord, with_devices


class SearchProgress(NamedTuple):
    """How far a search is that a sweep asks for."""

    sweep_id: int
    labels: Mapping[str, str]
    """Axis → choice of the cell."""
    trials: int
    """As many as the sweep asks for."""
    seeds: int
    """Runs of a trial, one a tuning seed."""
    ended: Mapping[TrialState, int]
    """How its trials ended → how many did."""

    @property
    def left(self) -> int:
        """Trials that have not ended, drawn or not."""
        return self.trials - sum(self.ended.values())


def progress(database: Database) -> tuple[SearchProgress, ...]:
    """Of every search that some sweep asks for, in the order of sweeps and of their cells."""
    asked = select(sweep_search, search.c.search).join(search, search.c.id == sweep_search.c.search_id)
    ended = (
        select(sweep_search.c.sweep_id, sweep_search.c.ordinal, trial.c.state, func.count().label("trials"))
        .join(trial, and_(trial.c.search_id == sweep_search.c.search_id, trial.c.number < sweep_search.c.trials))
        .where(trial.c.state.is_not(None))
        .group_by(sweep_search.c.sweep_id, sweep_search.c.ordinal, trial.c.state)
        .order_by(trial.c.state)
    )
    counts: dict[tuple[int, int], dict[TrialState, int]] = defaultdict(dict)
    with database.read() as connection:
        for row in connection.execute(ended):
            counts[row.sweep_id, row.ordinal][TrialState(row.state)] = row.trials
        return tuple(
            SearchProgress(
                row.sweep_id,
                row.labels,
                row.trials,
                len(row.search["tuning"]["seeds"]),
                counts[row.sweep_id, row.ordinal],
            )
            for row in connection.execute(asked.order_by(sweep_search.c.sweep_id, sweep_search.c.ordinal))
        )


def work(database: Database) -> tuple[WorkRecord, ...]:
    """Every run of a trial that is claimed, in the order of the claims, but those that its sweep plans beside."""
    claim = and_(attempt.c.run_id == run.c.id, attempt.c.number == run.c.attempt)
    planned = (
        select(sweep_run.c.seed)
        .where(sweep_run.c.sweep_id == sweep_search.c.sweep_id, sweep_run.c.planned)
        .where(sweep_run.c.cell_id == run.c.cell_id, sweep_run.c.seed == run.c.seed)
    )
    rows = (
        select(
            sweep_search.c.sweep_id,
            run.c.id,
            run.c.cell_id,
            run.c.owner,
            run.c.lease_until - now(),
            run.c.progress_step,
            now() - attempt.c.started,
            attempt.c.environment_id,
        )
        .join_from(run, attempt, claim)
        .join(trial, trial.c.cell_id == run.c.cell_id)
        .join(sweep_search, sweep_search.c.search_id == trial.c.search_id)
        .where(run.c.state == RunState.RUNNING, ~planned.exists())
        .distinct()
    )
    with database.read() as connection:
        found = [*with_devices(connection, connection.execute(rows).all())]
    return tuple(sorted(found, key=lambda one: (-one.running, one.run_id)))


def seconds_of_trials(database: Database) -> dict[int, float]:
    """Sweep → mean wall time of the completed runs of the cells that it tried."""
    of_run = (
        select(run.c.cell_id, func.sum(attempt.c.ended - attempt.c.started).label("seconds"))
        .join(attempt, attempt.c.run_id == run.c.id)
        .where(run.c.state == RunState.COMPLETED, run.c.cell_id.in_(select(trial.c.cell_id)))
        .group_by(run.c.id, run.c.cell_id)
        .subquery()
    )
    rows = (
        select(sweep_search.c.sweep_id, func.avg(of_run.c.seconds))
        .join(trial, trial.c.search_id == sweep_search.c.search_id)
        .join(of_run, of_run.c.cell_id == trial.c.cell_id)
        .group_by(sweep_search.c.sweep_id)
    )
    with database.read() as connection:
        return {sweep_id: seconds for sweep_id, seconds in connection.execute(rows) if seconds is not None}
