"""A sweep as the database remembers it, as a plan again."""

from kdx.grid.plan import Plan, PlannedCell, TableSpec
from kdx.grid.spec import CellSpec
from kdx.store.records import SweepRecord


def plan_of(sweep: SweepRecord) -> Plan:
    """The plan that was registered, without its grid file."""
    cells = tuple(
        PlannedCell(cell.id, cell.ordinal, cell.labels, CellSpec.model_validate(cell.spec)) for cell in sweep.cells
    )
    return Plan(
        name=sweep.name,
        cells=cells,
        seeds=tuple(sweep.grid["seeds"]),
        tables=tuple(TableSpec.model_validate(table) for table in sweep.grid["tables"]),
        axes=tuple(sweep.grid["axes"]),
        description=sweep.grid["description"],
        command=sweep.grid.get("command", ""),  # which older ones lack
        file=sweep.grid.get("file", ""),  # likewise
    )
