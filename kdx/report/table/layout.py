"""The layout of a table: headers, cells and metrics, without comparisons."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kdx.grid.plan import Shown, TableSpec
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.seeds import rule_of
from kdx.grid.table_layout import Address, Labelled, layouts_of, reads_evaluations
from kdx.report.selection.best_seed import by_cell
from kdx.report.selection.cells import Cell, cell_of
from kdx.report.selection.evaluated import EvaluatedCell, evaluated_cells
from kdx.report.statistics.metric import Metric
from kdx.report.wording import in_levels
from kdx.store.records import CellRecord, SweepRecord


@dataclass(frozen=True)
class Layout:
    """A table without conclusions; audit, notes, comparisons and published values depend on nothing else."""

    name: str
    caption: str
    shown: Shown
    """Which number each place shows: the selected test score, or the mean over seeds."""
    row_factors: tuple[str, ...]
    column_factors: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Header of each row: a word for each row factor."""
    columns: tuple[tuple[str, ...], ...]
    """Header of each column: a word for each column factor, none where the table has no column factor."""
    metrics: tuple[Metric | None, ...]
    """The metric of each column; None where it mixes several."""
    places: Mapping[Address, Cell]
    """Place → cell, row by row; a place is missing if the grid plans nothing there, or the cell's task has no such
    metric."""
    records: Mapping[str, CellRecord]
    """Cell id → the cell as the sweep planned it."""
    evaluations: Mapping[str, EvaluatedCell] = field(default_factory=dict)
    """Cell id → the evaluation whose scores stand in its place; none where the scores are those of tests."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, row by row."""
        return tuple(self.places.values())

    @property
    def by_column(self) -> list[Address]:
        """Every place, column by column, as its cells are compared."""
        return sorted(self.places, key=lambda at: at[::-1])

    @cached_property
    def n(self) -> int | None:
        """The number of seeds behind every score, or None when it is not the same everywhere."""
        numbers = {cell.summary.n for cell in self.cells if cell.value is not None and cell.summary}
        return numbers.pop() if len(numbers) == 1 else None

    @property
    def fewest(self) -> int:
        """The smallest number of scores of a cell that has any; 0 where none has."""
        return min((len(cell.scores) for cell in self.cells if cell.scores), default=0)

    def header(self, at: Address) -> dict[str, str]:
        """Factor → word of a place."""
        row, column = at
        factors = (*self.row_factors, *self.column_factors)
        return dict(zip(factors, (*self.rows[row], *self.columns[column]), strict=True))

    def place(self, at: Address) -> str:
        """The words of a place's row and column, joined."""
        return in_levels(self.header(at))

    def trained(self, cell: Cell) -> str:
        """The id of the trained cell; that of an evaluation is another one."""
        return self.evaluations[cell.id].cell_id if cell.id in self.evaluations else cell.id

    def spec(self, at: Address) -> ResolvedSpec:
        return self.records[self.places[at].id].spec


def lay_out(sweep: SweepRecord, specs: Sequence[TableSpec]) -> tuple[Layout, ...]:
    """Place the cells of the sweep as each table asks.

    Raises:
        KdxError: a table that does not fit the cells, see `kdx.grid.table_layout.LayoutBuilder.build`.
    """
    all_evaluations = evaluated_cells(sweep)
    headers_as = layouts_of(*placed_cells(sweep, all_evaluations), of_sweeps=bool(sweep.joins))
    runs, rule = by_cell(sweep.runs), rule_of(sweep.grid)
    layouts = []
    for table in specs:
        headers = headers_as(table)
        places: dict[Address, Cell] = {}
        records: dict[str, CellRecord] = {}
        evaluations: dict[str, EvaluatedCell] = {}
        for at, index in sorted(headers.at.items()):
            evaluated = all_evaluations[index] if all_evaluations and reads_evaluations(table) else None
            record = evaluated.record if evaluated else sweep.cells[index]
            cell = cell_of(
                evaluated or record,
                runs.get(evaluated.cell_id if evaluated else record.id, ()),
                sweep.metrics,
                sweep.documents,
                metric=table.metric,
                shown=table.cell,
                seed_rule=rule,
            )
            if cell:
                places[at], records[record.id] = cell, record
                if evaluated:
                    evaluations[record.id] = evaluated
        columns = range(len(headers.columns))
        layouts.append(
            Layout(
                name=table.name,
                caption=table.caption,
                shown=table.cell,
                row_factors=table.rows,
                column_factors=table.columns,
                rows=headers.rows,
                columns=headers.columns,
                metrics=tuple(_only(cell.metric for at, cell in places.items() if at[1] == index) for index in columns),
                places=places,
                records=records,
                evaluations=evaluations,
            )
        )
    return tuple(layouts)


def placed_cells(sweep: SweepRecord, evaluations: Sequence[EvaluatedCell]) -> tuple[list[Labelled], list[Labelled]]:
    """Return the cells of a sweep, and their evaluations, as `kdx.grid.table_layout` places them."""
    return (
        [(cell.labels, cell.spec) for cell in sweep.cells],
        [(cell.record.labels, cell.record.spec) for cell in evaluations],
    )


def _only(metrics: Iterable[Metric]) -> Metric | None:
    distinct = set(metrics)
    return distinct.pop() if len(distinct) == 1 else None
