"""Reads the database: each function returns frozen records from one short transaction, without a query per row.

What cells are made of is imported where it is read: it takes as long as all else that a short look at runs needs.
"""

import hashlib
import json
import zlib
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    Text,
    and_,
    case,
    cast,
    func,
    or_,
    select,
    true,
    tuple_,
    type_coerce,
)

from kdx.errors import KdxError, did_you_mean
from kdx.grid import shipped
from kdx.store import remarks
from kdx.store.database import Database
from kdx.store.json_object import JsonObject
from kdx.store.recorded_grid import check_grid, metrics_of_evaluations, whole_cell
from kdx.store.records import (
    CODE,
    FINAL,
    AttemptRecord,
    CellRecord,
    CurveRecord,
    DocumentRecord,
    EvaluationRecord,
    Inventory,
    Provenance,
    RunRecord,
    RunState,
    SearchRecord,
    SweepRecord,
    SweepSummary,
    TrialRecord,
)
from kdx.store.refusals import edited
from kdx.store.schema import (
    among,
    attempt,
    cell,
    definitions,
    environment,
    evaluation,
    evaluation_document,
    evaluation_metric,
    identity,
    metric,
    now,
    output,
    plan,
    remark,
    run,
    search,
    sweep,
    sweep_cell,
    sweep_run,
    sweep_search,
    test_document,
    trial,
    value_of,
)

if TYPE_CHECKING:
    from kdx.grid.difference import Contents
    from kdx.grid.plan import Plan, RunKey

MOST_TEXT = 1 << 30
"""Largest size of the texts of a run in bytes, unpacked."""

_AT_A_TIME = 1000
"""Number of rows that are held in memory at once."""


def sweeps(database: Database) -> tuple[SweepSummary, ...]:
    """Every sweep with the number of its runs in each state, the last planned sweep first."""
    # Apart from the counting: grouped at once, SQLite goes by the key of plans and reads the runs at random.
    planned = (
        select(sweep_run.c.sweep_id, run.c.state)
        .join(run, same_run(run))
        .where(sweep_run.c.planned, is_newest())
        .cte("planned")
        .prefix_with("MATERIALIZED")
    )
    counted = select(planned.c.sweep_id, planned.c.state, func.count().label("runs")).group_by(
        planned.c.sweep_id, planned.c.state
    )
    with database.read() as connection:
        rows = connection.execute(_last_planned_first()).all()
        states = connection.execute(counted).all()
    counts: dict[int, dict[RunState, int]] = defaultdict(dict)
    for row in states:
        counts[row.sweep_id][row.state] = row.runs
    return tuple(SweepSummary(row.id, row.name, row.created, row.updated, counts[row.id]) for row in rows)


def names(database: Database) -> dict[str, int]:
    """Name → id of every sweep, the last planned sweep first."""
    with database.read() as connection:
        return {row.name: row.id for row in connection.execute(_last_planned_first())}


def runs(database: Database, sweep_id: int, cell_ids: Collection[str] | None = None) -> tuple[RunRecord, ...]:
    """The newest generation of each planned run of the sweep, in the order of their first plan.

    Args:
        cell_ids: only of these cells; None: of all.
    """
    which = _planned_in(sweep_id)
    if cell_ids is not None:
        which &= among(run.c.cell_id, cell_ids)
    with database.read() as connection:
        return records(connection, which)


def recorded(
    database: Database, cell_ids: Iterable[str], seeds: Iterable[int] | None = None
) -> "dict[RunKey, RunRecord]":
    """Key → the newest generation of that run, for every run of these cells in any sweep and any search.

    Args:
        seeds: only runs with these; None: with whatever seeds.
    """
    which: ColumnElement[bool] = among(run.c.cell_id, cell_ids)
    if seeds is not None:
        which &= among(run.c.seed, seeds)
    with database.read() as connection:
        return {record.key: record for record in records(connection, which)}


def runs_of_searches(connection: Connection, search_ids: Collection[str]) -> tuple[RunRecord, ...]:
    """Return the runs of the trials of these searches."""
    return records(connection, among(run.c.search_id, search_ids))


def searches_of_sweeps(
    connection: Connection, sweep_ids: Collection[int] | None = None, *, tried: str | None = None
) -> dict[int, tuple[SearchRecord, ...]]:
    """Return sweep → the searches that its newest plan asks for, in the order of its cells, with their trials.

    Args:
        sweep_ids: only of these sweeps; None: of all.
        tried: only searches of which this cell is a trial; None: all.
    """
    rows = (
        select(sweep_search, search.c.search)
        .join(search, search.c.id == sweep_search.c.search_id)
        .order_by(sweep_search.c.ordinal)
    )
    if sweep_ids is not None:
        rows = rows.where(sweep_search.c.sweep_id.in_(list(sweep_ids)))
    if tried is not None:
        rows = rows.where(search.c.id.in_(select(trial.c.search_id).where(trial.c.cell_id == tried)))
    planned = connection.execute(rows).all()
    trials_by_search = trials(connection, {row.search_id for row in planned}) if planned else {}
    searches: dict[int, list[SearchRecord]] = defaultdict(list)
    for row in planned:
        plain = {**row.search, "tuning": {**row.search["tuning"], "trials": row.trials}}
        drawn = tuple(trials_by_search.get(row.search_id, ())[: row.trials])
        searches[row.sweep_id].append(SearchRecord(row.search_id, row.ordinal, row.labels, plain, drawn))
    return {sweep_id: tuple(records_of_sweep) for sweep_id, records_of_sweep in searches.items()}


def searching(database: Database, sweep_ids: Collection[int]) -> set[int]:
    """Return those of these sweeps that ask for a search which has trials left."""
    with database.read() as connection:
        of_sweeps = searches_of_sweeps(connection, sweep_ids)
    return {sweep_id for sweep_id, searches in of_sweeps.items() if any(search.left for search in searches)}


def searches_that_tried(database: Database, cell_id: str) -> tuple[SearchRecord, ...]:
    """Return the searches of which a cell is a trial, each as the sweep that asks for most trials has it."""
    with database.read() as connection:
        by_sweep = searches_of_sweeps(connection, tried=cell_id)
    ordered = sorted((record for records in by_sweep.values() for record in records), key=lambda record: record.wanted)
    return tuple({record.id: record for record in ordered}.values())


def trials(connection: Connection, search_ids: Collection[str]) -> dict[str, list[TrialRecord]]:
    """Return search → its trials with their runs, in the order of their numbers; searches without trials have none."""
    rows = select(trial).where(among(trial.c.search_id, search_ids)).order_by(trial.c.search_id, trial.c.number)
    runs: dict[tuple[str | None, str], list[RunRecord]] = defaultdict(list)
    for record in runs_of_searches(connection, search_ids):
        runs[record.search_id, record.cell_id].append(record)
    by_search: dict[str, list[TrialRecord]] = defaultdict(list)
    for row in connection.execute(rows):
        runs_of_trial = tuple(runs[row.search_id, row.cell_id])
        by_search[row.search_id].append(
            TrialRecord(row.number, row.parameters, row.attributes, row.cell_id, runs_of_trial)
        )
    return dict(by_search)


def load_sweep(database: Database, name_or_id: str | int | None = None) -> SweepRecord:
    """A sweep with all that a report needs, from one state of the database.

    Args:
        name_or_id: None for the sweep that was planned last.

    Raises:
        KdxError: there is no such sweep, or none at all.
    """
    with database.read() as connection:
        return _sweep_record(connection, sweep_row(connection, database, name_or_id))


def results(database: Database, plan: "Plan") -> SweepRecord:
    """What the database has of the cells and seeds of a plan, as `load_sweep` returns a sweep.

    The plan need not be recorded, or be the newest of its name.
    """
    which = among(run.c.cell_id, [planned.id for planned in plan.cells]) & among(run.c.seed, plan.seeds)
    which &= run.c.search_id.is_(None)
    with database.read() as connection:
        return _with_runs(connection, which, no_results(plan))


def no_results(plan: "Plan") -> SweepRecord:
    """The same of a plan of which nothing has run yet."""
    # late: the grid's models take 0.1 s to import, and a list of sweeps or runs needs none
    from kdx.grid.resolved_spec import ResolvedSpec

    cells = tuple(CellRecord(each.id, each.ordinal, each.labels, ResolvedSpec.of(each.spec)) for each in plan.cells)
    return SweepRecord(0, plan.name, 0.0, 0.0, plan.grid, cells, ())


def load_sweeps(database: Database) -> tuple[SweepRecord, ...]:
    """Every sweep as `load_sweep` returns it, the last planned first, from one state of the database."""
    with database.read() as connection:
        return tuple(_sweep_record(connection, row) for row in connection.execute(_last_planned_first()).all())


def _sweep_record(connection: Connection, row: Row[Any]) -> SweepRecord:
    # late: custom components are found with the grid's models, as above
    from kdx.components.registry import know
    from kdx.store.components import load_components

    check_grid(row.name, row.grid)
    cells = tuple(
        CellRecord(planned.id, planned.ordinal, planned.labels, whole_cell(planned.id, planned.spec))
        for planned in planned_cells(connection, row.id)
    )
    searches_of_sweep = searches_of_sweeps(connection, [row.id]).get(row.id, ())
    hashes = {word: sha256 for record in searches_of_sweep for _, word, sha256 in record.search.get("components", ())}
    hashes |= {word: sha256 for record in cells for word, sha256 in record.spec.components.items()}
    hashes |= metrics_of_evaluations(row.grid)
    know(load_components(connection, hashes))
    which = _planned_in(row.id)
    planned = SweepRecord(row.id, row.name, row.created, row.updated, row.grid, cells, (), searches=searches_of_sweep)
    return replace(_with_runs(connection, which, planned), seeds_raised=_seeds_raised(connection, row.id, which))


def planned_cells(connection: Connection, sweep_id: int) -> Sequence[Any]:
    """Id, JSON, ordinal and labels of each cell that a sweep plans, in the order of the plan."""
    return connection.execute(
        select(cell.c.id, cell.c.spec, sweep_cell.c.ordinal, sweep_cell.c.labels)
        .join(sweep_cell)
        .where(sweep_cell.c.sweep_id == sweep_id, sweep_cell.c.planned)
        .order_by(sweep_cell.c.ordinal)
    ).all()


def _seeds_raised(connection: Connection, sweep_id: int, which: ColumnElement[bool]) -> tuple[int, ...]:
    """How many seeds a sweep had under each plan that added some once a run had completed."""
    plans = connection.execute(select(plan.c.made, plan.c.grid).where(plan.c.sweep_id == sweep_id).order_by(plan.c.id))
    numbers = [(time, len(grid.get("seeds", ()))) for time, grid in plans]
    if len({number for _, number in numbers}) < 2:
        return ()
    completed = (attempt.c.outcome == RunState.COMPLETED) & attempt.c.run_id.in_(select(run.c.id).where(which))
    first = connection.scalar(select(func.min(attempt.c.ended)).where(completed))
    raised: list[int] = []
    for (_, before), (time, number) in pairwise(numbers):
        if first is not None and time > first and number > before:
            raised += [number] if raised else [before, number]
    return tuple(raised)


def _with_runs(connection: Connection, which: ColumnElement[bool], planned: SweepRecord) -> SweepRecord:
    """A sweep with the runs for which a condition holds, and with what was recorded of them."""
    runs = records(connection, which, finals=True)
    ids = select(run.c.id).where(which)
    measured = measured_by_test(connection, metric.c.run_id.in_(ids))
    documents = connection.execute(select(test_document).where(test_document.c.run_id.in_(ids)))
    return replace(
        planned,
        runs=runs,
        metrics={record.id: measured.get(record.id, {}) for record in runs},
        provenance=_provenance(connection, which),
        evaluations=evaluations_where(connection, evaluation.c.run_id.in_(ids)),
        documents={each.run_id: DocumentRecord(each.unit, each.sums) for each in documents},
    )


def measured_by_test(connection: Connection, of_runs: ColumnElement[bool]) -> dict[int, dict[str, float]]:
    """Run id → every metric of its test, and `model/parameters`; runs without any are left out."""
    metrics: dict[int, dict[str, float]] = defaultdict(dict)
    for prefix in ("test", "model"):
        # A range of the key ("0" follows "/"); LIKE, or both ranges at once, would read every row of the run.
        rows = connection.execute(
            select(metric.c.run_id, metric.c.name, metric.c.bits)
            .where(of_runs, metric.c.name >= f"{prefix}/", metric.c.name < f"{prefix}0")
            .order_by(metric.c.run_id, metric.c.name, metric.c.step)  # the order of the key
        ).yield_per(_AT_A_TIME)
        for run_id, name, bits in rows:
            metrics[run_id][name] = value_of(bits)
    return metrics


def contents(database: Database, name: str, known: Collection[str] = ()) -> "Contents | None":
    """The planned contents of the sweep of this name; None where there is no such sweep.

    Args:
        known: ids of cells that the caller has, so that their texts need not be looked into.
    """
    from kdx.grid.difference import Contents

    with database.read() as connection:
        named = connection.execute(select(sweep.c.id, sweep.c.grid).where(sweep.c.name == name)).first()
        if named is None:
            return None
        cells = planned_cells(connection, named.id)
        of_sweep = sweep_run.c.planned & (sweep_run.c.sweep_id == named.id)
        seeds = connection.scalars(select(sweep_run.c.seed).where(of_sweep).distinct().order_by(sweep_run.c.seed)).all()
        for row in cells:
            if row.id not in known:
                whole_cell(row.id, row.spec)
    file = named.grid.get("file", "")
    return Contents({row.id: row.spec for row in cells}, tuple(seeds), file)


def grids(database: Database) -> dict[str, Mapping[str, Any]]:
    """Name of a sweep → the parts of its grid that concern no single cell, the last planned sweep first."""
    with database.read() as connection:
        return {row.name: row.grid for row in connection.execute(_last_planned_first())}


def load_run(database: Database, run_id: int) -> RunRecord:
    """A run, without what its cell is.

    Raises:
        KdxError: there is no such run.
    """
    records_of_run = by_ids(database, [run_id])
    if not records_of_run:
        raise KdxError(f"there is no run {run_id}", place=database.name, hint="kdx status SWEEP lists those of a sweep")
    return records_of_run[0]


def by_ids(database: Database, run_ids: Collection[int]) -> tuple[RunRecord, ...]:
    """Those of these runs that there are, in whatever generation."""
    with database.read() as connection:
        return records(connection, among(run.c.id, run_ids), every=True)


def sweep_of(database: Database, run_id: int) -> str | None:
    """The name of the last planned sweep that plans a run; None where no sweep plans it any more."""
    plans = select(run.c.id).where(
        run.c.id == run_id, sweep_run.c.sweep_id == sweep.c.id, same_run(run), sweep_run.c.planned
    )
    with database.read() as connection:
        row = connection.execute(_last_planned_first().where(plans.exists())).first()
    return None if row is None else str(row.name)


def planned_too(database: Database, run_ids: Iterable[int], sweep_name: str) -> dict[str, int]:
    """Name of each other sweep that plans some of these runs → how many of them, by name."""
    counts = (
        select(sweep.c.name, func.count().label("runs"))
        .join(sweep_run, sweep_run.c.sweep_id == sweep.c.id)
        .join(run, same_run(run))
        .where(sweep_run.c.planned, among(run.c.id, run_ids), sweep.c.name != sweep_name)
        .group_by(sweep.c.name)
        .order_by(sweep.c.name)
    )
    with database.read() as connection:
        return {row.name: row.runs for row in connection.execute(counts)}


def place(database: Database) -> str | None:
    """SHA-256 of the place where the database last kept files of runs; None if it kept none."""
    with database.read() as connection:
        return connection.scalar(select(identity.c.place))


def inventory(database: Database) -> Inventory:
    """Every run in every generation, from one state of the database."""
    planned = select(sweep_run.c.cell_id, sweep_run.c.seed).where(sweep_run.c.planned).distinct()
    with database.read() as connection:
        runs = records(connection, true(), every=True)
        searches = set(connection.scalars(select(sweep_search.c.search_id)))
        return Inventory(
            runs=runs,
            planned=frozenset((row.cell_id, row.seed, None) for row in connection.execute(planned))
            | frozenset(record.key for record in runs if record.search_id in searches),
        )


def origins_of(database: Database, run_ids: Collection[int]) -> dict[int, Provenance]:
    """Run id → what it was computed from, and where."""
    with database.read() as connection:
        return _provenance(connection, among(run.c.id, run_ids))


def _provenance(connection: Connection, which: ColumnElement[bool]) -> dict[int, Provenance]:
    known = environments(connection, select(run.c.environment_id).where(which))
    meanings = _definitions(connection, select(run.c.definitions_id).where(which))
    rows = connection.execute(
        select(
            run.c.id,
            run.c.data_fingerprint,
            run.c.code_fingerprint,
            run.c.environment_id,
            run.c.definitions_id,
            type_coerce(run.c.data_facts, Text),
        ).where(which)
    ).all()

    later = attempt.alias()
    anew = select(later.c.number).where(
        later.c.run_id == attempt.c.run_id, later.c.number > attempt.c.number, later.c.resumed_step == 0
    )
    changed = select(attempt.c.run_id, attempt.c.resumed_step, attempt.c.changes).where(
        attempt.c.changes.is_not(None), attempt.c.resumed_step > 0, ~anew.exists()
    )
    changes: dict[int, list[str]] = {}
    for row in connection.execute(changed.order_by(attempt.c.number)):
        changes.setdefault(row.run_id, []).append(f"{row.changes} from step {row.resumed_step} on")

    # Thousands of runs share a few origins, so the records share them too.
    @cache
    def origin(
        data: str | None,
        code: str | None,
        where: str | None,
        meaning: str | None,
        facts: str | None,
        changed: str | None,
    ) -> Provenance:
        conditions, modules = known.get(where, (None, None))
        texts = meanings.get(meaning), changed, _object(run.c.data_facts, facts)
        return Provenance(data, code, conditions, *texts, modules)

    return {run_id: origin(*rest, "; ".join(changes.get(run_id, ())) or None) for run_id, *rest in rows}


def environments(
    connection: Connection, ids: Select[Any]
) -> dict[str | None, tuple[Mapping[str, Any], Mapping[str, str] | None]]:
    """Id of an environment → its facts, and the hash of each module that was used in it."""
    rows = connection.execute(select(environment).where(environment.c.id.in_(ids)))
    # The modules are recorded with the environment, so that many cells share one row, but they are no part of it.
    return {
        row.id: ({name: value for name, value in row.environment.items() if name != CODE}, row.environment.get(CODE))
        for row in rows
    }


def _definitions(connection: Connection, ids: Select[Any]) -> dict[str | None, Mapping[str, str]]:
    """Id of definitions → metric → its definition."""
    rows = connection.execute(select(definitions).where(definitions.c.id.in_(ids)))
    return {row.id: row.definitions for row in rows}


def evaluations_where(connection: Connection, condition: ColumnElement[bool]) -> dict[int, dict[str, EvaluationRecord]]:
    """Run id → settings' id → evaluation, for the evaluations for which a condition holds."""
    numbers: dict[int, dict[str, float]] = {}
    metrics = select(evaluation_metric).join(evaluation).where(condition)
    for row in connection.execute(metrics.order_by(evaluation_metric.c.name)):
        numbers.setdefault(row.evaluation_id, {})[row.name] = value_of(row.bits)
    of_documents = select(evaluation_document).join(evaluation).where(condition)
    documents = {row.evaluation_id: DocumentRecord(row.unit, row.sums) for row in connection.execute(of_documents)}
    known = environments(connection, select(evaluation.c.environment_id).where(condition))
    meanings = _definitions(connection, select(evaluation.c.definitions_id).where(condition))
    records: dict[int, dict[str, EvaluationRecord]] = {}
    for row in connection.execute(select(evaluation).where(condition).order_by(evaluation.c.id)):
        conditions, modules = known.get(row.environment_id, (None, None))
        records.setdefault(row.run_id, {})[row.settings_id] = EvaluationRecord(
            settings_id=row.settings_id,
            settings=row.settings,
            made=row.made,
            longest_context=row.longest_context,
            definitions=meanings.get(row.definitions_id),
            error=row.error,
            metrics=numbers.get(row.id, {}),
            documents=documents.get(row.id),
            provenance=None
            if row.error is not None
            else Provenance(
                data=row.data_fingerprint,
                code=row.code_fingerprint,
                environment=conditions,
                definitions=meanings.get(row.definitions_id),
                modules=modules,
            ),
        )
    return records


def _object(column: Column[Any], text: str | None) -> dict[str, Any] | None:
    kind = column.type
    assert isinstance(kind, JsonObject)
    return None if text is None else kind.read(text)


def curve(database: Database, run_id: int, name: str) -> list[tuple[int, float]]:
    """One metric of a run as (optimiser step, value), by step."""
    with database.read() as connection:
        rows = connection.execute(
            select(metric.c.step, metric.c.bits)
            .where(metric.c.run_id == run_id, metric.c.name == name)
            .order_by(metric.c.step)
        ).all()
    return [(step, value_of(bits)) for step, bits in rows]


def metric_names(database: Database, run_ids: Collection[int]) -> tuple[str, ...]:
    """The names of all numbers that these runs recorded, in alphabetical order."""
    rows = select(metric.c.name).where(among(metric.c.run_id, run_ids)).distinct().order_by(metric.c.name)
    with database.read() as connection:
        return tuple(connection.scalars(rows))


def curves_of(
    database: Database, run_ids: Collection[int], names: Iterable[str] | None = None
) -> dict[int, dict[str, CurveRecord]]:
    """Run id → metric → curve; runs and metrics without numbers are left out.

    Args:
        names: the metrics; None for all.
    """
    # One row for each curve, since millions of rows, one for each number, would block writers.
    rows = (
        select(
            metric.c.run_id,
            metric.c.name,
            func.aggregate_strings(cast(metric.c.step, Text), ",").label("steps"),
            func.aggregate_strings(cast(metric.c.bits, Text), ",").label("bits"),
        )
        .where(among(metric.c.run_id, run_ids), true() if names is None else metric.c.name.in_(list(names)))
        .group_by(metric.c.run_id, metric.c.name)
    )
    curves: dict[int, dict[str, CurveRecord]] = {}
    # Text of steps → the steps, and the index of each in the text; runs of a grid record at the same steps.
    shared: dict[str, tuple[array[int], list[int]]] = {}
    with database.read() as connection:
        # Read in batches, since a hundred thousand curves take several times as much memory as text.
        for row in connection.execute(rows).yield_per(_AT_A_TIME):
            if row.steps not in shared:
                # SQL does not define the order within a group.
                unordered = [int(step) for step in row.steps.split(",")]
                order = sorted(range(len(unordered)), key=unordered.__getitem__)
                shared[row.steps] = array("q", sorted(unordered)), order
            steps, order = shared[row.steps]
            bits = [int(number) for number in row.bits.split(",")]
            values = array("d", array("q", map(bits.__getitem__, order)).tobytes())
            curves.setdefault(row.run_id, {})[row.name] = CurveRecord(steps, values)
    return curves


def outputs_of(database: Database, run_ids: Iterable[int], name: str) -> dict[int, list[str]]:
    """Run id → the texts that it produced; runs without texts are left out."""
    with database.read() as connection:
        rows = connection.execute(select(output).where(among(output.c.run_id, run_ids), output.c.name == name)).all()
        return {row.run_id: texts_of(row) for row in rows}


def texts_of(row: Row[Any]) -> list[str]:
    """The texts in a row of `output`.

    Raises:
        DatabaseError: the texts do not match their checksum.
    """
    try:
        text = zlib.decompressobj().decompress(row.lines, MOST_TEXT)
    except zlib.error:
        text = b""
    if hashlib.sha256(text).hexdigest() != row.sha256:
        raise edited(f"run {row.run_id}", f"its texts {row.name} do not match their checksum")
    lines: list[str] = json.loads(text)
    return lines


def attempts(database: Database, run_id: int) -> tuple[AttemptRecord, ...]:
    """Every try at a run, the first one first."""
    return attempts_of(database, [run_id])[run_id]


def attempts_of(database: Database, run_ids: Collection[int]) -> dict[int, tuple[AttemptRecord, ...]]:
    """Run id → every try at it, the first one first."""
    tries: dict[int, list[AttemptRecord]] = {run_id: [] for run_id in run_ids}
    with database.read() as connection:
        rows = connection.execute(
            select(attempt).where(among(attempt.c.run_id, run_ids)).order_by(attempt.c.number)
        ).all()
    for row in rows:
        columns = dict(row._mapping)
        tries[columns.pop("run_id")].append(AttemptRecord(**columns))
    return {run_id: tuple(attempts) for run_id, attempts in tries.items()}


def _last_planned_first() -> Select[Any]:
    return select(sweep).order_by(sweep.c.updated.desc(), sweep.c.id.desc())


def sweep_row(connection: Connection, database: Database, name_or_id: str | int | None = None) -> Row[Any]:
    """The row of a sweep; of the last planned one if none is named.

    Raises:
        KdxError: there is no such sweep, or none at all.
    """
    rows = connection.execute(_last_planned_first()).all()
    for row in rows:
        if name_or_id is None or name_or_id in (row.id, row.name):
            return row
    place = database.name
    if not rows:
        raise KdxError("no sweep is recorded here yet", place=place, hint="kdx sweep GRID records one")
    names = sorted(row.name for row in rows)
    hint = did_you_mean(str(name_or_id), names)
    if name_or_id in shipped.names():
        hint = f"kdx sweep {name_or_id} trains it"
    raise KdxError(f"there is no sweep `{name_or_id}`", place=place, allowed=names, hint=hint)


def _planned_in(sweep_id: int) -> ColumnElement[bool]:
    # Not EXISTS, which would be asked of every run of the database.
    planned = select(sweep_run.c.cell_id, sweep_run.c.seed).where(sweep_run.c.sweep_id == sweep_id, sweep_run.c.planned)
    return run.c.search_id.is_(None) & tuple_(run.c.cell_id, run.c.seed).in_(planned)


def same_run(runs: FromClause) -> ColumnElement[bool]:
    """Whether a row of `sweep_run` plans a run, in whatever generation.

    Args:
        runs: the table of runs, or a part of it.
    """
    return and_(sweep_run.c.cell_id == runs.c.cell_id, sweep_run.c.seed == runs.c.seed, runs.c.search_id.is_(None))


def is_newest() -> ColumnElement[bool]:
    """Whether a run is of the newest generation of its cell and seed.

    Few runs have a newer generation, so these are looked for once. To ask of each run whether there is one takes half
    as long again as all else, and a window over all runs five times as long.
    """
    newer, older = run.alias(), run.alias()
    same = and_(older.c.cell_id == newer.c.cell_id, older.c.seed == newer.c.seed, older.c.search_id.is_(None))
    superseded = (
        select(older.c.id)
        .join_from(newer, older, and_(same, older.c.generation < newer.c.generation))
        .where(newer.c.generation > 0)
    )
    return run.c.id.not_in(superseded)


# Columns that only `_provenance` reads, and scores, which are read from their bits.
_NOT_READ = {
    "definitions_id",
    "environment_id",
    "data_fingerprint",
    "data_facts",
    "code_fingerprint",
    "valid_score",
    "test_score",
}


def records(
    connection: Connection, which: ColumnElement[bool], *, finals: bool = False, every: bool = False
) -> tuple[RunRecord, ...]:
    """The newest generation of each of these runs, with `finals` also those that may stand for it, or with `every` all.

    An older generation stands for a run whose newest is unfinished, or out of tables.
    """
    same = (run.c.cell_id, run.c.seed, run.c.search_id)
    final = case((run.c.state.in_(FINAL), run.c.generation))
    out = select(remark.c.run_id).where(remarks.invalidates())
    each = (
        select(
            *(column for column in run.c if column.name not in _NOT_READ),
            func.max(run.c.generation).over(partition_by=same).label("newest"),
            func.max(final).over(partition_by=same).label("newest_final"),
            func.max(case((run.c.id.in_(out), run.c.generation))).over(partition_by=same).label("newest_out"),
        )
        .where(which)
        .subquery()
    )
    wanted: ColumnElement[bool] = true() if every else each.c.generation == each.c.newest
    if finals:
        wanted = or_(wanted, each.c.generation == each.c.newest_final, each.c.newest_out.is_not(None))
    # An attempt that has not ended is NULL here, which the sum ignores.
    seconds = select(func.sum(attempt.c.ended - attempt.c.started)).where(attempt.c.run_id == each.c.id)
    derived = {
        "lease_left": case((each.c.state == RunState.RUNNING, each.c.lease_until - now())),
        "valid_score": each.c.valid_bits,
        "test_score": each.c.test_bits,
        "seconds": seconds.scalar_subquery(),
    }
    columns = [
        derived[name] if name in derived else each.c[name] for name in RunRecord._fields if name != "invalidated"
    ]
    rows = connection.execute(select(*columns).where(wanted).order_by(each.c.id)).all()
    reasons = remarks.reasons(connection)
    valid, test = (RunRecord._fields.index(name) for name in ("valid_score", "test_score"))
    records = []
    for row in rows:
        values = list(row)
        for score in (valid, test):
            values[score] = None if values[score] is None else value_of(values[score])
        records.append(RunRecord(*values, invalidated=reasons.get(row.id)))  # type: ignore[misc]
    return tuple(records)
