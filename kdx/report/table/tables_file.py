"""Tables that a file of their own asks for, in the place of a grid's."""

from dataclasses import replace
from pathlib import Path

from pydantic import Field

from kdx.errors import KdxError, by_place
from kdx.grid.field_types import Section
from kdx.grid.messages import checked
from kdx.grid.model import Tables
from kdx.grid.source import read
from kdx.grid.table_layout import Labelled, check_tables, read_tables
from kdx.report.selection.evaluated import evaluated_cells
from kdx.report.table.layout import headers_of
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

    def cells() -> list[Labelled]:
        records = (*sweep.cells, *(cell.record for cell in evaluated_cells(sweep)))
        return [(record.labels, record.spec) for record in records]

    faults: list[KdxError] = []
    root = read(path, faults, what="file of tables")
    file, root = checked(_TablesFile, root, faults)
    if not file.tables and not faults:
        allowed = "tables: a list of tables, as a grid has them"
        faults.append(KdxError("the file asks for no tables", place=root.place, allowed=allowed))
    tables = read_tables(file.tables, root.value.get("tables"), cells, faults)
    if not faults:
        check_tables(tables, headers_of(sweep), faults)
    if faults:
        raise by_place(faults)
    specs = [table.model_dump(mode="json") for table, _ in tables]
    return replace(sweep, grid={**sweep.grid, "tables": specs})
