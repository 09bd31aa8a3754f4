"""Records searches of parameters and their trials, which `kdx.store.reading` reads."""

from collections.abc import Collection, Iterable, Sequence

from pydantic import ValidationError
from sqlalchemy import Connection, delete, insert, update

from kdx.components.registry import components_of
from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan
from kdx.grid.tuning import Search
from kdx.store.backend import insert_rows
from kdx.store.components import keep
from kdx.store.database import Database
from kdx.store.records import RunState, TrialRecord, TrialState
from kdx.store.schema import LINE, NEW_RUN, among, cell, now, run, search, sweep_search, trial
from kdx.vocabulary import Direction


def best_trial(trials: Iterable[TrialRecord], direction: Direction) -> TrialRecord | None:
    """Return the completed trial with the best mean validation score, of equal ones the first; None if none is."""
    sign = 1.0 if direction is Direction.MIN else -1.0
    completed = [trial for trial in trials if trial.state is TrialState.COMPLETED]
    return min(completed, key=lambda trial: (sign * (trial.value or 0.0), trial.number), default=None)


def ask_for(connection: Connection, database: Database, sweep_id: int, plan: Plan) -> None:
    """Record which searches a plan asks for, in place of those that the sweep asked for before."""
    connection.execute(delete(sweep_search).where(sweep_search.c.sweep_id == sweep_id))
    planned = [(cell, cell.search) for cell in plan.cells if cell.search is not None]
    plain = {wanted.id: wanted.plain for _, wanted in planned}
    insert_rows(
        connection,
        database.insert(search).values(made=now()).on_conflict_do_nothing(),
        [{"id": search_id, "search": text} for search_id, text in plain.items()],
    )
    insert_rows(
        connection,
        insert(sweep_search).values(sweep_id=sweep_id),
        [
            {
                "ordinal": cell.ordinal,
                "search_id": wanted.id,
                "labels": dict(cell.labels),
                "trials": wanted.tuning.trials,
            }
            for cell, wanted in planned
        ],
    )


def add(database: Database, drawn: Iterable[tuple[Search, Sequence[TrialRecord]]]) -> None:
    """Record trials, and their runs as pending. A trial that is there stays as it is."""
    specs, rows, runs = {}, [], []
    for wanted, trials in drawn:
        for record in trials:
            row = {"number": record.number, "parameters": dict(record.parameters), "cell_id": None}
            row |= {"search_id": wanted.id, "attributes": dict(record.attributes)}
            rows.append(row)
            try:
                spec = wanted.cell(record.parameters)
            except ValidationError:  # such parameters do not go together
                continue
            row["cell_id"] = key = cell_id(spec)
            specs[key] = spec
            runs += [{"cell_id": key, "seed": seed, "search_id": wanted.id, **NEW_RUN} for seed in wanted.tuning.seeds]
    with database.write() as connection:
        cells = [{"id": key, "spec": spec.text} for key, spec in specs.items()]
        insert_rows(connection, database.insert(cell).on_conflict_do_nothing(), cells)
        hashes = {word: sha256 for spec in specs.values() for word, sha256 in spec.components.items()}
        keep(connection, database, components_of(hashes))
        insert_rows(connection, database.insert(run).on_conflict_do_nothing(), runs)
        insert_rows(connection, database.insert(trial).on_conflict_do_nothing(), rows)


def prune(database: Database, run_ids: Collection[int], reason: str) -> None:
    """End those of these runs that never started: the runs of their trial before them were enough."""
    with database.write() as connection:
        connection.execute(
            update(run)
            .where(among(run.c.id, run_ids), run.c.state == RunState.PENDING)
            .values(state=RunState.PRUNED, error=reason[:LINE])
        )
