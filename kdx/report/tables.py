"""From a sweep's records to its tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from kdx.errors import KdxError
from kdx.grid.placing import Placing, factor_value, place
from kdx.grid.plan import TableSpec
from kdx.report.cells import Cell, Metric, cell_of
from kdx.report.comparisons import (
    Address,
    Difference,
    Pool,
    Rival,
    best_of,
    corrected,
    differences,
    pairs,
    pool,
)
from kdx.report.fairness import audit
from kdx.report.notes import notes
from kdx.report.table import Table
from kdx.store.records import CellRecord, RunRecord, SweepRecord


def tables(sweep: SweepRecord, database: str = "") -> tuple[Table, ...]:
    """Every table that the grid asks for, or one over all that varies when it asks for none.

    Args:
        database: where the sweep is from, for messages.

    Raises:
        KdxError: a table that does not fit the cells, see `kdx.grid.placing.place`, or that another version wrote.
    """
    place = ", ".join(filter(None, (database, f"sweep {sweep.name}")))
    try:
        asked = [TableSpec.model_validate(one) for one in sweep.grid.get("tables") or ()]
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise KdxError(
            f"this kdx cannot read one of its tables: {'.'.join(map(str, fault['loc']))}: {fault['msg']}",
            place=place,
            hint="plan its grid again with this version, or report with the one that planned it",
        ) from error
    try:
        return tuple(table(sweep, one) for one in asked or [_default(sweep)])
    except KdxError as error:
        raise KdxError(error.problem, place=place, allowed=error.allowed, hint=error.hint) from error


def table(sweep: SweepRecord, asked: TableSpec) -> Table:
    """The table that `asked` describes, over all cells of the sweep.

    Raises:
        KdxError: see `tables`.
    """
    placing = place([(cell.labels, cell.spec) for cell in sweep.cells], asked)
    runs = by_cell(sweep.runs)
    cells: dict[Address, Cell] = {}
    records: dict[Address, CellRecord] = {}
    for at, index in sorted(placing.at.items()):
        record = sweep.cells[index]
        cell = cell_of(record, runs.get(record.id, ()), sweep.metrics, metric=asked.metric, shown=asked.cell)
        if cell:
            cells[at], records[at] = cell, record
    comparable = [_pooled(cells, records, places) for places in _comparable(cells, records)]
    best = _best(comparable)
    alike = pairs(comparable)
    found = differences(comparable, lambda at: best[at][0] if at in best else None, {})
    ids = {at: cell.id for at, cell in cells.items()}
    from_best = tuple(replace(one, p=alike.get(frozenset((ids[one.at], ids[one.against])))) for one in found)
    from_baseline = None
    if asked.baseline:
        from_baseline = corrected(differences(comparable, _baseline(placing, asked), asked.margin))
    _mark(cells, best, from_best)
    count = sum(one.p is not None for one in from_baseline) if from_baseline is not None else len(alike)
    # Marking made new cells.
    comparable = [
        (replace(shared, comparisons=count), {at: cells[at] for at in places}) for shared, places in comparable
    ]
    columns = range(len(placing.columns))
    laid_out = Table(
        name=asked.name,
        caption=asked.caption,
        shown=asked.cell,
        row_factors=asked.rows,
        column_factors=asked.columns,
        rows=placing.rows,
        columns=placing.columns,
        metrics=tuple(_only(cell.metric for (_, c), cell in cells.items() if c == column) for column in columns),
        body=tuple(tuple(cells.get((row, column)) for column in columns) for row in range(len(placing.rows))),
        baseline=asked.baseline,
        pools=tuple(shared for shared, _ in comparable),
        differences=from_best if from_baseline is None else from_baseline,
    )
    laid_out = replace(laid_out, audit=audit(laid_out, comparable, records, sweep))
    return replace(
        laid_out,
        notes=notes(laid_out, {cell.id: str(records[at].spec["task"]) for at, cell in cells.items()}, sweep.provenance),
        best=_best_of(comparable) if best else "",
        near=NEAR if any(cell.near for cell in cells.values()) else "",
        ahead=AHEAD if any(cell.ahead for cell in cells.values()) else "",
    )


NEAR = (
    "not distinguishable from it (paired by seed, p ≥ 0.05 after Holm's correction over all pairs of the table's "
    "columns)"
)
AHEAD = "better than it by the mean over seeds (p < 0.05, corrected likewise)"


def by_cell(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Cell id → its runs."""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.cell_id, []).append(run)
    return found


def _default(sweep: SweepRecord) -> TableSpec:
    """Rows over every axis that varies, one column for each task."""

    def varies(factor: str) -> bool:
        return len({factor_value(cell.labels, cell.spec, factor) for cell in sweep.cells}) > 1

    axes = sweep.grid.get("axes") or dict.fromkeys(axis for cell in sweep.cells for axis in cell.labels)
    rows = [axis for axis in axes if axis != "task" and varies(axis)]
    columns = ["task"] if rows and varies("task") else []
    return TableSpec(name=sweep.name, rows=tuple(rows or ["task"]), columns=tuple(columns))


def _comparable(cells: Mapping[Address, Cell], records: Mapping[Address, CellRecord]) -> list[list[Address]]:
    """Places of the same task, data and metric."""
    groups: dict[tuple[object, ...], list[Address]] = {}
    for at, cell in cells.items():
        spec = records[at].spec
        groups.setdefault((cell.metric, spec["task"], repr(spec["data"])), []).append(at)
    return list(groups.values())


def _pooled(
    cells: Mapping[Address, Cell], records: Mapping[Address, CellRecord], places: Sequence[Address]
) -> tuple[Pool, dict[Address, Cell]]:
    its = {at: cells[at] for at in places}
    return pool(list(its.values()), str(records[places[0]].spec["task"])), its


def _best(comparable: Sequence[tuple[Pool, Mapping[Address, Cell]]]) -> dict[Address, tuple[Address, ...]]:
    """Place → where the best value of its column stands; several times when values are equal."""
    found: dict[Address, tuple[Address, ...]] = {}
    for _, places in comparable:
        for column in dict.fromkeys(column for _, column in places):
            its = {at: cell for at, cell in places.items() if at[1] == column}
            if best := tuple(best_of(its)):
                found |= dict.fromkeys(its, best)
    return found


def _mark(
    cells: dict[Address, Cell], best: Mapping[Address, tuple[Address, ...]], from_best: Iterable[Difference]
) -> None:
    """Marks the best of each column, what cannot be told from it, and what is better by its mean."""
    for at in {one for those in best.values() for one in those}:
        cells[at] = replace(cells[at], best=True)
    for one in from_best:
        if one.estimate and not cells[one.at].best:
            ahead = one.told_apart and one.estimate.value > 0
            cells[one.at] = replace(cells[one.at], near=not one.told_apart, ahead=ahead)


def _baseline(placing: Placing, asked: TableSpec) -> Rival:
    """The place with the baseline's words where it has them, and with one's own words for the rest."""
    rows = {header: index for index, header in enumerate(placing.rows)}
    columns = {header: index for index, header in enumerate(placing.columns)}

    def replaced(factors: Sequence[str], header: Sequence[str]) -> tuple[str, ...]:
        return tuple(asked.baseline.get(factor, word) for factor, word in zip(factors, header, strict=True))

    def rival(at: Address) -> Address | None:
        row = rows.get(replaced(asked.rows, placing.rows[at[0]]))
        column = columns.get(replaced(asked.columns, placing.columns[at[1]]))
        return None if row is None or column is None or (row, column) == at else (row, column)

    return rival


def _best_of(comparable: Sequence[tuple[Pool, Mapping[Address, Cell]]]) -> str:
    columns = [column for _, places in comparable for column in {column for _, column in places}]
    among = "" if len(columns) == len(set(columns)) else ", among cells of the same task, data and metric"
    return f"best of its column{among}"


def _only(metrics: Iterable[Metric]) -> Metric | None:
    found = set(metrics)
    return found.pop() if len(found) == 1 else None
