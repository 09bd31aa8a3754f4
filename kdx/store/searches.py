"""Records searches of parameters and their trials, which `kdx.store.reading` reads."""

from collections.abc import Collection, Iterable, Sequence

from pydantic import ValidationError
from sqlalchemy import Connection, delete, update

from kdx.components.registry import components_of
from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan
from kdx.grid.tuning import Search
from kdx.store.components import keep
from kdx.store.database import Database
from kdx.store.records import RunState, TrialRecord, TrialState
from kdx.store.schema import LINE, cell, now, run, search, sweep_search, trial
from kdx.vocabulary import Direction


def best_trial(trials: Iterable[TrialRecord], direction: Direction) -> TrialRecord | None:
    """Return the completed trial with the best mean validation score, of equal ones the first; None if none is."""
    sign = 1.0 if direction is Direction.MIN else -1.0
    completed = [one for one in trials if one.state is TrialState.COMPLETED]
    return min(completed, key=lambda one: (sign * (one.value or 0.0), one.number), default=None)


def ask_for(connection: Connection, database: Database, sweep_id: int, plan: Plan) -> None:
    """Record which searches a plan asks for, in place of those that the sweep asked for before."""
    connection.execute(delete(sweep_search).where(sweep_search.c.sweep_id == sweep_id))
    asked = [(planned, planned.search) for planned in plan.cells if planned.search is not None]
    if not asked:
        return
    searches = {of.id: of for _, of in asked}
    connection.execute(
        database.insert(search).values(made=now()).on_conflict_do_nothing(),
        [{"id": key, "search": of.plain} for key, of in searches.items()],
    )
    connection.execute(
        database.insert(sweep_search),
        [
            {
                "sweep_id": sweep_id,
                "ordinal": planned.ordinal,
                "search_id": of.id,
                "labels": dict(planned.labels),
                "trials": of.tuning.trials,
            }
            for planned, of in asked
        ],
    )


def add(database: Database, drawn: Iterable[tuple[Search, Sequence[TrialRecord]]]) -> None:
    """Record trials, and their runs as pending. A trial that is there stays as it is."""
    specs = {}
    rows, runs = [], []
    fresh = {"generation": 0, "state": RunState.PENDING, "attempt": 0, "progress_step": 0, "stalls": 0}
    for of, trials_of in drawn:
        for one in trials_of:
            row = {"number": one.number, "parameters": dict(one.parameters), "attributes": dict(one.attributes)}
            try:
                spec = of.cell(one.parameters)
            except ValidationError:  # such parameters do not go together
                rows.append({"search_id": of.id, **row, "cell_id": None})
                continue
            key = cell_id(spec)
            specs[key] = spec
            rows.append({"search_id": of.id, **row, "cell_id": key})
            runs += [{"cell_id": key, "seed": seed, "search_id": of.id, **fresh} for seed in of.tuning.seeds]
    insert = database.insert
    with database.write() as connection:
        if specs:
            cells = [{"id": key, "spec": spec.text} for key, spec in specs.items()]
            connection.execute(insert(cell).on_conflict_do_nothing(), cells)
            hashes = {word: sha256 for spec in specs.values() for word, sha256 in spec.components.items()}
            keep(connection, database, components_of(hashes))
            connection.execute(insert(run).on_conflict_do_nothing(), runs)
        if rows:
            connection.execute(insert(trial).on_conflict_do_nothing(), rows)


def prune(database: Database, run_ids: Collection[int], reason: str) -> None:
    """End those of these runs that nobody has begun: the runs of their trial before them were enough."""
    with database.write() as connection:
        connection.execute(
            update(run)
            .where(run.c.id.in_(list(run_ids)), run.c.state == RunState.PENDING)
            .values(state=RunState.PRUNED, error=reason[:LINE])
        )
