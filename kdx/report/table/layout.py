"""Where the cells of a sweep stand in a table: headers, cells, metrics; nothing of how they compare."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kdx.grid.plan import Shown, TableSpec
from kdx.grid.table_layout import place
from kdx.report.selection.cells import Cell, Metric, cell_of
from kdx.store.records import CellRecord, RunRecord, SweepRecord

Address = tuple[int, int]
"""Row and column of a cell."""


@dataclass(frozen=True)
class Layout:
    """A table without what is concluded from it."""

    name: str
    caption: str
    """The grid's own words."""
    shown: Shown
    """What its places hold: the selected test score, or the mean over seeds."""
    row_factors: tuple[str, ...]
    column_factors: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Header of each row: a word for each row factor."""
    columns: tuple[tuple[str, ...], ...]
    """Header of each column: a word for each column factor, none where the table has no column factor."""
    metrics: tuple[Metric | None, ...]
    """The metric of each column; None where it mixes several."""
    body: tuple[tuple[Cell | None, ...], ...]
    """Rows of cells; None where the grid plans nothing, or the cell's task has no such metric."""
    records: Mapping[str, CellRecord]
    """Cell id → the cell as the sweep planned it."""

    @property
    def places(self) -> dict[Address, Cell]:
        """Every cell by its row and column, row by row."""
        return {(r, c): cell for r, row in enumerate(self.body) for c, cell in enumerate(row) if cell}

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, row by row."""
        return tuple(self.places.values())

    @property
    def n(self) -> int | None:
        """The number of seeds behind every score, or None when it is not the same everywhere."""
        numbers = {cell.summary.n for cell in self.cells if cell.value is not None and cell.summary}
        return numbers.pop() if len(numbers) == 1 else None

    @property
    def fewest(self) -> int:
        """Scores of the cell that has the fewest, of those with any; 0 where none has."""
        return min((len(cell.scores) for cell in self.cells if cell.scores), default=0)

    def header(self, at: Address) -> dict[str, str]:
        """Factor → word of a place."""
        row, column = at
        factors = (*self.row_factors, *self.column_factors)
        return dict(zip(factors, (*self.rows[row], *self.columns[column]), strict=True))

    def spec(self, at: Address) -> Mapping[str, object]:
        """The resolved cell of a place."""
        return self.records[self.places[at].id].spec


def lay_out(sweep: SweepRecord, asked: TableSpec) -> Layout:
    """The cells of the sweep as `asked` places them.

    Raises:
        KdxError: a table that does not fit the cells, see `kdx.grid.table_layout.place`.
    """
    placing = place([(cell.labels, cell.spec) for cell in sweep.cells], asked)
    runs = by_cell(sweep.runs)
    cells: dict[Address, Cell] = {}
    records: dict[str, CellRecord] = {}
    for at, index in sorted(placing.at.items()):
        record = sweep.cells[index]
        cell = cell_of(record, runs.get(record.id, ()), sweep.metrics, metric=asked.metric, shown=asked.cell)
        if cell:
            cells[at], records[record.id] = cell, record
    columns = range(len(placing.columns))
    return Layout(
        name=asked.name,
        caption=asked.caption,
        shown=asked.cell,
        row_factors=asked.rows,
        column_factors=asked.columns,
        rows=placing.rows,
        columns=placing.columns,
        metrics=tuple(_only(cell.metric for (_, c), cell in cells.items() if c == column) for column in columns),
        body=tuple(tuple(cells.get((row, column)) for column in columns) for row in range(len(placing.rows))),
        records=records,
    )


def by_cell(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Cell id → its runs."""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.cell_id, []).append(run)
    return found


def _only(metrics: Iterable[Metric]) -> Metric | None:
    found = set(metrics)
    return found.pop() if len(found) == 1 else None
