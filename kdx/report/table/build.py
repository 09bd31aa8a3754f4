"""From a sweep's records to its tables."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from pydantic import ValidationError

from kdx.errors import KdxError
from kdx.grid.plan import TableSpec
from kdx.grid.table_layout import factor_value
from kdx.report.selection.cells import Cell
from kdx.report.table.audit import audit
from kdx.report.table.comparable import Trait, traits
from kdx.report.table.comparisons import (
    Difference,
    Groups,
    Rival,
    best_of_columns,
    corrected,
    differences,
    group,
    rivals,
    worse_than_best,
)
from kdx.report.table.layout import Address, Layout, lay_out
from kdx.report.table.notes import definitions, notes
from kdx.report.table.table import Table
from kdx.store.records import SweepRecord


def tables(sweep: SweepRecord, database: str = "") -> tuple[Table, ...]:
    """Every table that the grid asks for, or one over all that varies when it asks for none.

    Args:
        database: where the sweep is from, for messages.

    Raises:
        KdxError: a table that does not fit the cells, see `kdx.grid.table_layout.place`, or that another version wrote.
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
    layout = lay_out(sweep, asked)
    alike = traits(layout, sweep)
    groups = _groups(layout, alike)
    best = best_of_columns(groups)
    comparisons = rivals(groups, best)
    from_best = differences(groups, lambda at: best[at][0] if at in best else None, {})
    from_best = worse_than_best(from_best, comparisons)
    found, sides = from_best, 1
    baseline = _baseline(layout, asked)
    if asked.baseline:
        found, sides = corrected(differences(groups, baseline, asked.margin)), 2
        comparisons = sum(one.p is not None for one in found)
    layout = _marked(layout, best, from_best)
    places = layout.places
    groups = [
        (replace(shared, comparisons=comparisons, sides=sides), {at: places[at] for at in cells})
        for shared, cells in groups
    ]
    untested = any(cell.untested for cell in places.values())
    return Table(
        **{one.name: getattr(layout, one.name) for one in fields(layout)},
        baseline=asked.baseline,
        groups=tuple(shared for shared, _ in groups),
        differences=found,
        audit=audit(layout, groups, alike, baseline, sweep),
        notes=notes(layout),
        definitions=definitions(layout, sweep.provenance),
        best=_best_of(groups) if best else "",
        near=_near(comparisons if not asked.baseline else rivals(groups, best))
        if any(cell.near for cell in places.values())
        else "",
        untested=UNTESTED if untested else "",
    )


UNTESTED = "not compared with it: a single seed, or a score that is not finite, has no spread to judge by"


def _near(comparisons: int) -> str:
    many = f"{comparisons} comparison{'' if comparisons == 1 else 's'}"
    return (
        "may be the best as well: with 95% confidence the best of each column is among those so marked and the bold "
        f"one (Hsu 1984; Welch's t, {many})"
    )


def _default(sweep: SweepRecord) -> TableSpec:
    """Rows over every axis that varies, one column for each task."""

    def varies(factor: str) -> bool:
        return len({factor_value(cell.labels, cell.spec, factor) for cell in sweep.cells}) > 1

    axes = sweep.grid.get("axes") or dict.fromkeys(axis for cell in sweep.cells for axis in cell.labels)
    rows = [axis for axis in axes if axis != "task" and varies(axis)]
    columns = ["task"] if rows and varies("task") else []
    return TableSpec(name=sweep.name, rows=tuple(rows or ["task"]), columns=tuple(columns))


def _groups(layout: Layout, alike: Mapping[Address, tuple[Trait, ...]]) -> Groups:
    """Cells whose numbers compare."""
    found: dict[Any, dict[Address, Cell]] = {}
    for at, cell in layout.places.items():
        same = tuple((one.topic, one.key) for one in alike[at])
        found.setdefault((cell.metric, str(layout.spec(at)["task"]), same), {})[at] = cell
    return [(group([*cells.values()], task), cells) for (_, task, _), cells in found.items()]


def _marked(layout: Layout, best: Mapping[Address, tuple[Address, ...]], from_best: Sequence[Difference]) -> Layout:
    """The best of each column marked, what cannot be told from it, and what could not be compared."""
    told = {one.at: one for one in from_best}
    ids = {at: {layout.places[one].id for one in those} for at, those in best.items()}

    def marked(at: Address, cell: Cell) -> Cell:
        if at not in best:
            return cell
        if cell.id in ids[at]:
            return replace(cell, best=True)
        one = told.get(at)
        if one is None or one.p is None:
            return replace(cell, untested=cell.value is not None and cell.metric.on_scale(cell.value) is not None)
        return replace(cell, near=not one.told_apart)

    body = tuple(
        tuple(cell and marked((r, c), cell) for c, cell in enumerate(row)) for r, row in enumerate(layout.body)
    )
    return replace(layout, body=body)


def _baseline(layout: Layout, asked: TableSpec) -> Rival:
    """The place with the baseline's words where it has them, and with one's own words for the rest."""
    rows = {header: index for index, header in enumerate(layout.rows)}
    columns = {header: index for index, header in enumerate(layout.columns)}

    def replaced(factors: Sequence[str], header: Sequence[str]) -> tuple[str, ...]:
        return tuple(asked.baseline.get(factor, word) for factor, word in zip(factors, header, strict=True))

    def rival(at: Address) -> Address | None:
        row = rows.get(replaced(asked.rows, layout.rows[at[0]]))
        column = columns.get(replaced(asked.columns, layout.columns[at[1]]))
        return None if row is None or column is None or (row, column) == at else (row, column)

    return rival


def _best_of(groups: Groups) -> str:
    columns = [column for _, cells in groups for column in {column for _, column in cells}]
    among = "" if len(columns) == len(set(columns)) else ", among cells whose numbers compare"
    return f"best mean of its column{among}"
