"""Tables that a file of their own asks for, in the place of a grid's."""

from dataclasses import replace
from pathlib import Path

from pydantic import Field

from kdx.errors import KdxError, by_place
from kdx.grid.field_types import Section
from kdx.grid.messages import checked
from kdx.grid.model import Tables
from kdx.grid.source import read
from kdx.grid.table_layout import read_tables
from kdx.report.selection.evaluated import evaluated_cells
from kdx.report.table.layout import placed_cells
from kdx.store.records import SweepRecord


class _TablesFile(Section):
    tables: Tables = Field(default_factory=list)


def with_tables_of(path: Path, sweep: SweepRecord) -> SweepRecord:
    """The sweep with the tables that a file asks for under `tables:`, as a grid has them.

    Args:
        sweep: a sweep, or several joined.

    Raises:
        Faults: everything that is wrong with the file or with how its tables fit the cells, in the order of the file.
    """
    faults: list[KdxError] = []
    root = read(path, faults, what="file of tables")
    file, root = checked(_TablesFile, root, faults)
    if not file.tables and not faults:
        allowed = "tables: a list of tables, as a grid has them"
        faults.append(KdxError("the file asks for no tables", place=root.place, allowed=allowed))
    tables = read_tables(
        file.tables,
        root.value.get("tables"),
        lambda: placed_cells(sweep, evaluated_cells(sweep)),
        faults,
        of_sweeps=bool(sweep.joins),
    )
    if faults:
        raise by_place(faults)
    specs = [table.model_dump(mode="json") for table in tables]
    return replace(sweep, grid={**sweep.grid, "tables": specs})
