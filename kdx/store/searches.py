"""Records searches of parameters and their trials. Each function is one transaction.

What cells are made of is imported where a trial is added, as in `kdx.store.reading`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, delete, select, update

from kdx.store.database import Database
from kdx.store.records import RunState, SearchRecord, TrialRecord, TrialState
from kdx.store.schema import bits_of, cell, now, run, search, sweep_search, trial, value_of
from kdx.vocabulary import Direction

if TYPE_CHECKING:
    from kdx.grid.plan import Plan
    from kdx.grid.spec import CellSpec
    from kdx.grid.tuning import Search


@dataclass(frozen=True)
class NewTrial:
    """A trial that was drawn."""

    number: int
    parameters: Mapping[str, Any]
    """Factor → its value."""
    attributes: Mapping[str, Any]
    """What the sampler keeps of its draw."""
    spec: "CellSpec | None"
    """None: there is no such cell, so that the trial has failed."""


class _Ended(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def state(self) -> TrialState | None: ...
    @property
    def value(self) -> float | None: ...


_Trial = TypeVar("_Trial", bound=_Ended)


def best_trial(trials: Iterable[_Trial], direction: Direction) -> _Trial | None:
    """The completed trial with the best mean validation score, of equal ones the first; None: there is none."""
    sign = 1.0 if direction is Direction.MIN else -1.0
    completed = [one for one in trials if one.state is TrialState.COMPLETED and one.value is not None]
    return min(completed, key=lambda one: (sign * (one.value or 0.0), one.number), default=None)


def ask_for(connection: Connection, database: Database, sweep_id: int, plan: "Plan") -> None:
    """Records which searches a plan asks for, in place of those that the sweep asked for before."""
    connection.execute(delete(sweep_search).where(sweep_search.c.sweep_id == sweep_id))
    asked = [one for one in plan.cells if one.search is not None]
    if not asked:
        return
    searches = {one.search.id: one.search for one in asked if one.search}
    connection.execute(
        database.insert(search).values(made=now()).on_conflict_do_nothing(),
        [{"id": key, "search": one.plain} for key, one in searches.items()],
    )
    connection.execute(
        database.insert(sweep_search),
        [
            {
                "sweep_id": sweep_id,
                "ordinal": one.ordinal,
                "search_id": one.search.id,
                "labels": dict(one.labels),
                "trials": one.search.tuning.trials,
            }
            for one in asked
            if one.search
        ],
    )


def that_search(database: Database, sweep_ids: Collection[int]) -> frozenset[int]:
    """Those of these sweeps that ask for a search."""
    asked = select(sweep_search.c.sweep_id).where(sweep_search.c.sweep_id.in_(list(sweep_ids))).distinct()
    with database.read() as connection:
        return frozenset(connection.scalars(asked))


def of_sweep(database: Database, sweep_id: int) -> tuple[SearchRecord, ...]:
    """The searches that the newest plan of a sweep asks for, in the order of its cells."""
    with database.read() as connection:
        return _asked(connection, sweep_search.c.sweep_id == sweep_id)


def with_trials(connection: Connection, sweep_id: int) -> tuple[SearchRecord, ...]:
    """The same with the trials of each, as many as the sweep asks for, in three statements."""
    return _with_trials(connection, _asked(connection, sweep_search.c.sweep_id == sweep_id))


def that_tried(database: Database, cell_id: str) -> tuple[SearchRecord, ...]:
    """The searches of which a cell is a trial, with their trials, as many as the sweep with the most asks for."""
    tried = select(trial.c.search_id).where(trial.c.cell_id == cell_id)
    with database.read() as connection:
        asked = _asked(connection, sweep_search.c.search_id.in_(tried))
        most = {one.id: one for one in sorted(asked, key=lambda one: one.search["tuning"]["trials"])}
        return _with_trials(connection, tuple(most.values()))


def _with_trials(connection: Connection, asked: tuple[SearchRecord, ...]) -> tuple[SearchRecord, ...]:
    if not asked:
        return ()
    ids = {one.id for one in asked}
    found = _trials(connection, ids)
    steps = _steps(connection, ids)
    return tuple(
        one._replace(
            trials=tuple(found.get(one.id, ())[: one.search["tuning"]["trials"]]),
            steps={
                number: sum(of_seeds.get(seed, 0) for seed in one.search["tuning"]["seeds"])
                for number, of_seeds in steps.get(one.id, {}).items()
            },
        )
        for one in asked
    )


def _asked(connection: Connection, which: ColumnElement[bool]) -> tuple[SearchRecord, ...]:
    rows = (
        select(sweep_search, search.c.search)
        .join(search, search.c.id == sweep_search.c.search_id)
        .where(which)
        .order_by(sweep_search.c.ordinal)
    )
    found = []
    for row in connection.execute(rows):
        tuning = {**row.search["tuning"], "trials": row.trials}
        found.append(SearchRecord(row.search_id, row.ordinal, row.labels, {**row.search, "tuning": tuning}))
    return tuple(found)


def _steps(connection: Connection, search_ids: Iterable[str]) -> dict[str, dict[int, dict[int, int]]]:
    """Search → number of a trial → seed → optimiser steps of its newest run."""
    rows = (
        select(trial.c.search_id, trial.c.number, run.c.seed, run.c.progress_step)
        .join(run, run.c.cell_id == trial.c.cell_id)
        .where(trial.c.search_id.in_(list(search_ids)))
        .order_by(run.c.generation)
    )
    found: dict[str, dict[int, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in connection.execute(rows):
        found[row.search_id][row.number][row.seed] = row.progress_step
    return found


def trials(database: Database, search_ids: Iterable[str]) -> dict[str, list[TrialRecord]]:
    """Search → its trials, in the order of their numbers; searches without trials are left out."""
    with database.read() as connection:
        return _trials(connection, search_ids)


def _trials(connection: Connection, search_ids: Iterable[str]) -> dict[str, list[TrialRecord]]:
    rows = select(trial).where(trial.c.search_id.in_(list(search_ids))).order_by(trial.c.search_id, trial.c.number)
    found: dict[str, list[TrialRecord]] = defaultdict(list)
    for row in connection.execute(rows):
        state = None if row.state is None else TrialState(row.state)
        value = None if row.bits is None else value_of(row.bits)
        found[row.search_id].append(TrialRecord(row.number, row.parameters, row.attributes, row.cell_id, state, value))
    return dict(found)


def add(database: Database, drawn: "Sequence[tuple[Search, Sequence[NewTrial]]]") -> None:
    """Records trials, and their runs as pending where there are none. A trial that is there stays as it is."""
    # late: the grid's models take 0.1 s to import, and who only reads trials needs none
    from kdx.components.registry import components_of
    from kdx.grid.identity import cell_id
    from kdx.store.components import keep

    specs = {cell_id(one.spec): one.spec for _, many in drawn for one in many if one.spec}
    cells = [{"id": key, "spec": spec.text} for key, spec in specs.items()]
    rows = [
        {
            "search_id": of.id,
            "number": one.number,
            "parameters": dict(one.parameters),
            "attributes": dict(one.attributes),
            "cell_id": cell_id(one.spec) if one.spec else None,
            "state": None if one.spec else TrialState.FAILED,
        }
        for of, many in drawn
        for one in many
    ]
    fresh = {"generation": 0, "state": RunState.PENDING, "attempt": 0, "progress_step": 0, "stalls": 0}
    runs = {
        (cell_id(one.spec), seed): {"cell_id": cell_id(one.spec), "seed": seed} | fresh
        for of, many in drawn
        for one in many
        if one.spec
        for seed in of.tuning.seeds
    }
    insert = database.insert
    with database.write() as connection:
        if cells:
            connection.execute(insert(cell).on_conflict_do_nothing(), cells)
            hashes = {word: sha256 for spec in specs.values() for word, sha256 in spec.components.items()}
            keep(connection, database, components_of(hashes))
            connection.execute(insert(run).on_conflict_do_nothing(), [*runs.values()])
        if rows:
            connection.execute(insert(trial).on_conflict_do_nothing(), rows)


def settle(database: Database, ended: Mapping[tuple[str, int], tuple[TrialState, float | None]]) -> None:
    """Records how trials ended, by (search, number); what a trial had before stands."""
    with database.write() as connection:
        for (search_id, number), (state, value) in ended.items():
            connection.execute(
                update(trial)
                .where(trial.c.search_id == search_id, trial.c.number == number, trial.c.state.is_(None))
                .values(state=state, value=value, bits=None if value is None else bits_of(value))
            )


def runs_of_trials(database: Database, search_ids: Collection[str]) -> dict[str, dict[int, RunState]]:
    """Search → run → its state, of the newest generations of the runs of its trials; searches without any are left out.

    A run that another grid has trained counts too.
    """
    asked = select(search.c.id, search.c.search).where(search.c.id.in_(list(search_ids)))
    rows = (
        select(trial.c.search_id, run.c.id, run.c.seed, run.c.cell_id, run.c.state)
        .join(run, run.c.cell_id == trial.c.cell_id)
        .where(trial.c.search_id.in_(list(search_ids)))
        .order_by(run.c.generation)
    )
    newest: dict[str, dict[tuple[str, int], tuple[int, RunState]]] = defaultdict(dict)
    with database.read() as connection:
        seeds = {row.id: frozenset(row.search["tuning"]["seeds"]) for row in connection.execute(asked)}
        for row in connection.execute(rows):
            if row.seed in seeds[row.search_id]:
                newest[row.search_id][row.cell_id, row.seed] = row.id, row.state
    return {key: dict(its.values()) for key, its in newest.items()}


def reopen(database: Database, search_ids: Collection[str]) -> None:
    """Takes back that trials of these searches have failed, so that they end anew once their runs do.

    A trial without a cell stays as it is. Nothing that was drawn after them may have come to a result, for it might
    have been drawn otherwise.
    """
    failed = trial.c.search_id.in_(list(search_ids)), trial.c.state == TrialState.FAILED, trial.c.cell_id.is_not(None)
    with database.write() as connection:
        connection.execute(update(trial).where(*failed).values(state=None, value=None, bits=None))


def runs_of_searches(connection: Connection, *which: ColumnElement[bool]) -> frozenset[tuple[str, int]]:
    """(cell id, seed) of the trials of every search that some sweep asks for.

    Args:
        which: conditions on the rows of `sweep_search` that count.
    """
    asked = (
        select(trial.c.cell_id, search.c.search)
        .join(search, search.c.id == trial.c.search_id)
        .where(trial.c.cell_id.is_not(None), search.c.id.in_(select(sweep_search.c.search_id).where(*which)))
    )
    return frozenset((row.cell_id, seed) for row in connection.execute(asked) for seed in row.search["tuning"]["seeds"])
