"""The layout of a table: headers, cells and metrics, without comparisons."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kdx.grid.cell_selector import same_word
from kdx.grid.plan import Shown, TableSpec
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.seeds import rule_of
from kdx.grid.table_layout import (
    Address,
    LayoutBuilder,
    TableLayout,
    factor_value,
    is_of_evaluation,
    reads_evaluations,
    reads_sweeps,
)
from kdx.report.selection.best_seed import by_cell
from kdx.report.selection.cells import Cell, cell_of
from kdx.report.selection.evaluated import EvaluatedCell, ImpossibleEvaluation, evaluated_cells
from kdx.report.selection.joined import apart
from kdx.report.statistics.metric import Metric
from kdx.store.records import CellRecord, DocumentRecord, RunRecord, SweepRecord


@dataclass(frozen=True)
class Layout:
    """A table without conclusions; audit, notes, comparisons and published values depend on nothing else."""

    name: str
    caption: str
    """The caption from the grid."""
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
    impossible: tuple[ImpossibleEvaluation, ...] = ()
    """The evaluations of the table that some of its cells cannot have."""

    @property
    def body(self) -> tuple[tuple[Cell | None, ...], ...]:
        """Rows of cells; None where a place is empty."""
        columns = range(len(self.columns))
        return tuple(tuple(self.places.get((row, column)) for column in columns) for row in range(len(self.rows)))

    def column(self, index: int) -> list[Cell | None]:
        """One column of cells; None where a place is empty."""
        return [self.places.get((row, index)) for row in range(len(self.rows))]

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
        """The smallest number of scores of a cell that has any; 0 where none has."""
        return min((len(cell.scores) for cell in self.cells if cell.scores), default=0)

    def header(self, at: Address) -> dict[str, str]:
        """Factor → word of a place."""
        row, column = at
        factors = (*self.row_factors, *self.column_factors)
        return dict(zip(factors, (*self.rows[row], *self.columns[column]), strict=True))

    def spec(self, at: Address) -> ResolvedSpec:
        """The spec of the cell in a place."""
        return self.records[self.places[at].id].spec


def lay_out(sweep: SweepRecord, asked: Sequence[TableSpec]) -> tuple[Layout, ...]:
    """The cells of the sweep as each table places them.

    Raises:
        KdxError: a table that does not fit the cells, see `kdx.grid.table_layout.LayoutBuilder.build`.
    """
    view_of = _views(sweep)
    return tuple(view_of(one).filled(one) for one in asked)


def headers_of(sweep: SweepRecord) -> Callable[[TableSpec], TableLayout]:
    """Places the cells of the sweep as a table asks, without their scores.

    Raises:
        KdxError: as `lay_out`; when the function that is returned is called.
    """
    view_of = _views(sweep)
    return lambda table: view_of(table).headers(table)


class _View:
    """The cells of a sweep, its evaluations among them, as tables place them."""

    def __init__(self, sweep: SweepRecord) -> None:
        self._sweep = sweep
        of_sweeps = bool(sweep.joins)
        self._own = LayoutBuilder([(cell.labels, cell.spec) for cell in sweep.cells], of_sweeps=of_sweeps)
        self._read, self._impossible = evaluated_cells(sweep)
        evaluations = [(one.record.labels, one.record.spec) for one in self._read]
        self._of_evaluations = LayoutBuilder(evaluations, of_sweeps=of_sweeps)
        self._runs = by_cell(sweep.runs)

    def _reads(self, table: TableSpec) -> bool:
        return bool(self._read) and reads_evaluations(table)

    def headers(self, table: TableSpec) -> TableLayout:
        return (self._of_evaluations if self._reads(table) else self._own).build(table)

    def filled(self, table: TableSpec) -> Layout:
        of_evaluations = (self._read, self._impossible) if self._reads(table) else ()
        return _filled(self.headers(table), table, self._sweep, self._runs, *of_evaluations)


def _views(sweep: SweepRecord) -> Callable[[TableSpec], _View]:
    """The cells that a table is of: those of several sweeps together, or apart where the table names sweeps."""
    made: dict[bool, _View] = {}

    def view_of(table: TableSpec) -> _View:
        is_apart = bool(sweep.joins) and reads_sweeps(table)
        if is_apart not in made:
            made[is_apart] = _View(apart(sweep) if is_apart else sweep)
        return made[is_apart]

    return view_of


def _filled(
    headers: TableLayout,
    asked: TableSpec,
    sweep: SweepRecord,
    runs: Mapping[str, list[RunRecord]],
    read: Sequence[EvaluatedCell] = (),
    impossible: Sequence[ImpossibleEvaluation] = (),
) -> Layout:
    places: dict[Address, Cell] = {}
    records: dict[str, CellRecord] = {}
    evaluations: dict[str, EvaluatedCell] = {}
    metrics: Mapping[int, Mapping[str, float]] = sweep.metrics
    documents: Mapping[int, DocumentRecord] = sweep.documents
    rule = rule_of(sweep.grid)
    for at, index in sorted(headers.at.items()):
        if read:
            one = read[index]
            record, its_runs = one.record, one.runs(runs.get(one.cell_id, []))
            metrics, documents = one.metrics, one.documents
        else:
            record = sweep.cells[index]
            its_runs = runs.get(record.id, [])
        cell = cell_of(record, its_runs, metrics, documents, metric=asked.metric, shown=asked.cell, seed_rule=rule)
        if cell:
            places[at], records[record.id] = cell, record
            if read:
                evaluations[record.id] = one
    columns = range(len(headers.columns))
    return Layout(
        name=asked.name,
        caption=asked.caption,
        shown=asked.cell,
        row_factors=asked.rows,
        column_factors=asked.columns,
        rows=headers.rows,
        columns=headers.columns,
        metrics=tuple(_only(cell.metric for (_, c), cell in places.items() if c == column) for column in columns),
        places=places,
        records=records,
        evaluations=evaluations,
        impossible=tuple(_meant(asked, impossible, evaluations)),
    )


def _meant(
    table: TableSpec, impossible: Iterable[ImpossibleEvaluation], evaluations: Mapping[str, EvaluatedCell]
) -> Iterator[ImpossibleEvaluation]:
    """Those of which the table shows the same evaluation of another cell, and which are of its cells."""
    shown = {(one.evaluation.asked.name, one.evaluation.asked.settings) for one in evaluations.values()}
    where = {factor: word for factor, word in table.where.items() if not is_of_evaluation(factor)}
    for one in impossible:
        labels, spec = one.record.labels, one.record.spec
        if (one.asked.name, one.asked.settings) in shown and all(
            same_word(factor_value(labels, spec, factor), word) for factor, word in where.items()
        ):
            yield one


def _only(metrics: Iterable[Metric]) -> Metric | None:
    found = set(metrics)
    return found.pop() if len(found) == 1 else None
