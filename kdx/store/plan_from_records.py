"""Rebuilds the plan of a sweep from its records."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kdx.components.find import bring, folders_of
from kdx.components.registry import components_of
from kdx.errors import KdxError
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.grid.tuning import Search
from kdx.metrics import METRICS
from kdx.store.recorded_grid import metrics_of_evaluations
from kdx.store.records import SearchRecord, SweepRecord


def plan_of(sweep: SweepRecord, components: Path | None = None) -> Plan:
    """The plan that was registered, without its grid file.

    Args:
        components: where the files of custom components lie, which its cells may need.

    Raises:
        KdxError: a cell has something that this kdx does not know and so cannot run; or a component that a cell needs
            is not there, or has another source.
    """
    missing = {word: sha256 for cell in sweep.cells for word, sha256 in cell.spec.missing_components.items()}
    bring(missing | _missing_metrics(sweep), folders_of(sweep.grid.get("file", ""), components), f"sweep {sweep.name}")
    if unknown := list(dict.fromkeys(word for cell in sweep.cells for word in cell.spec.unknown)):
        raise _written_by_another(sweep, unknown)
    return _planned(sweep, {cell.id: cell.spec.known for cell in sweep.cells})


def plan_at_hand(sweep: SweepRecord, components: Path | None = None) -> tuple[Plan, dict[str, KdxError]]:
    """The plan without the cells that cannot be run here, and cell id → why, for those.

    Args:
        components: as in `plan_of`.
    """
    lacking: dict[str, KdxError] = {}
    folders = folders_of(sweep.grid.get("file", ""), components)
    with suppress(KdxError):  # what lacks its metric is not evaluated here; its training needs none
        bring(_missing_metrics(sweep), folders, f"sweep {sweep.name}")
    for cell in sweep.cells:
        try:
            bring(cell.spec.missing_components, folders, f"sweep {sweep.name}")
        except KdxError as error:
            lacking[cell.id] = error
            continue
        if unknown := cell.spec.unknown:
            lacking[cell.id] = _written_by_another(sweep, dict.fromkeys(unknown))
    known = {cell.id: None if cell.id in lacking else cell.spec.known for cell in sweep.cells}
    return _planned(sweep, known), lacking


def _missing_metrics(sweep: SweepRecord) -> dict[tuple[str, str], str]:
    """Return ("metric", name) → hash of the source, of custom metrics of evaluations that cannot be run here."""
    metrics = metrics_of_evaluations(sweep.grid).items()
    return {
        ("metric", word): sha256
        for word, sha256 in metrics
        if word not in METRICS.outside or METRICS.outside[word].recorded
    }


def plan_to_decide_with(sweep: SweepRecord) -> Plan:
    """Return the same plan whether or not the code of custom components is here: nothing of it is run.

    Cells that this kdx does not know are left out.
    """
    return _planned(sweep, {cell.id: cell.spec.known for cell in sweep.cells})


def with_searches(plan: Plan, searches: Sequence[SearchRecord], components: Path | None = None) -> Plan:
    """A plan that was rebuilt, with a template for each of its searches, which finds its winner again from records.

    Args:
        components: as of `plan_of`.

    Raises:
        KdxError: a component that a search needs is not there, or has another source.
    """
    by_ordinal = {record.ordinal: Search.of(record.search) for record in searches}
    needed = {key: sha256 for search in by_ordinal.values() for key, sha256 in search.components.items()}
    known = components_of({word: sha256 for (_, word), sha256 in needed.items()})
    here = {(component.axis, component.word) for component in known}
    missing = {key: sha256 for key, sha256 in needed.items() if key not in here}
    bring(missing, folders_of(plan.file, components), f"sweep {plan.name}")
    tuned = {record.ordinal: _template(record, by_ordinal[record.ordinal]) for record in searches}
    others = [cell for cell in plan.cells if cell.ordinal not in tuned]
    cells = sorted([*others, *tuned.values()], key=lambda cell: cell.ordinal)
    return replace(plan, cells=tuple(cells))


def _template(record: SearchRecord, search: Search) -> PlannedCell:
    return PlannedCell(search.cell_id, record.ordinal, record.labels, search.cell({}), search=search)


def _planned(sweep: SweepRecord, specs: Mapping[str, CellSpec | None]) -> Plan:
    cells = tuple(
        PlannedCell(cell.id, cell.ordinal, cell.labels, spec) for cell in sweep.cells if (spec := specs[cell.id])
    )
    return Plan.recorded(sweep.name, cells, sweep.grid)


def _written_by_another(sweep: SweepRecord, unknown: Iterable[str]) -> KdxError:
    return KdxError(
        f"it has what this kdx does not know: {', '.join(unknown)}",
        place=f"sweep {sweep.name}",
        hint="resume it with the kdx that planned it; report, trace, query and export read its results here too",
    )
