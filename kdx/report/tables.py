"""From a sweep's records to a table: what stands in each place, and the caption that says how it came there."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite

from kdx.axes import Direction, Task
from kdx.grid.placing import factor_value, place
from kdx.grid.plan import TableSpec
from kdx.grid.spec import TEST_METRICS
from kdx.report.best_seed import best_seed
from kdx.report.statistics import Summary, summarise
from kdx.store.records import FINAL, CellRecord, RunRecord, RunState, SweepRecord


class State(StrEnum):
    """What a reader sees in a place: a score, nothing yet, or that every finished run diverged."""

    VALUE = "value"
    HOLE = "hole"
    NOT_CONVERGE = "not converge"


@dataclass(frozen=True)
class Metric:
    """A metric and its good end; of the test split, unless its name tells another."""

    name: str
    direction: Direction

    def __str__(self) -> str:
        return f"{self.name} {'↑' if self.direction is Direction.MAX else '↓'}"


@dataclass(frozen=True)
class Cell:
    """One place of a table, in full precision."""

    id: str
    """The cell's hash."""
    metric: Metric
    """What `score` is, such as bleu."""
    selected_by: Metric
    """What `validation` is, such as valid/bleu."""
    state: State
    run_id: int | None
    """The selected run."""
    seed: int | None
    """Its seed."""
    validation: float | None
    """Its best validation score."""
    score: float | None
    """Its test score; in a table of a validation metric, its best validation score."""
    summary: Summary | None
    """Such scores of every completed run."""
    planned: int
    """Seeds asked for."""
    completed: int
    diverged: int
    failed: int
    best: bool = False
    """Whether no other cell of its column, on the same task, data and metric, has a better score."""

    @property
    def unfinished(self) -> int:
        """Runs that are pending, running, interrupted, cancelled or pruned."""
        return self.planned - self.completed - self.diverged - self.failed


@dataclass(frozen=True)
class Table:
    """A table, ready to be written down in any format."""

    name: str
    caption: str
    """The grid's own words."""
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
    notes: tuple[str, ...]
    """The caption that goes with the numbers: selection rule, n, metrics, what the words in the body mean."""
    best: str
    """What the marked cells are, such as "best of its column"; empty where none is marked."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, row by row."""
        return tuple(cell for row in self.body for cell in row if cell)

    @property
    def n(self) -> int | None:
        """The number of seeds behind every score, or None when it is not the same everywhere."""
        numbers = {cell.summary.n for cell in self.cells if cell.state is State.VALUE and cell.summary}
        return numbers.pop() if len(numbers) == 1 else None


def tables(sweep: SweepRecord) -> tuple[Table, ...]:
    """Every table that the grid asks for, or one over all that varies when it asks for none.

    Raises:
        KdxError: a table that does not fit the cells, see `kdx.grid.placing.place`.
    """
    asked = [TableSpec.model_validate(one) for one in sweep.grid.get("tables") or ()]
    return tuple(table(sweep, one) for one in asked or [_default(sweep)])


def table(sweep: SweepRecord, asked: TableSpec) -> Table:
    """The table that `asked` describes, over all cells of the sweep.

    Raises:
        KdxError: see `tables`.
    """
    placing = place([(cell.labels, cell.spec) for cell in sweep.cells], asked)
    runs: dict[str, list[RunRecord]] = {}
    for run in sweep.runs:
        runs.setdefault(run.cell_id, []).append(run)
    body: list[list[Cell | None]] = [[None] * len(placing.columns) for _ in placing.rows]
    rivals: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for (row, column), index in placing.at.items():
        record = sweep.cells[index]
        body[row][column] = cell = _cell(record, runs.get(record.id, []), asked.metric, sweep.metrics)
        if cell:
            group = (column, cell.metric, record.spec["task"], repr(record.spec["data"]))
            rivals.setdefault(group, []).append((row, column))
    for places in rivals.values():
        _mark_best(body, places)
    laid_out = Table(
        name=asked.name,
        caption=asked.caption,
        row_factors=asked.rows,
        column_factors=asked.columns,
        rows=placing.rows,
        columns=placing.columns,
        metrics=tuple(_only(row[column] for row in body) for column in range(len(placing.columns))),
        body=tuple(map(tuple, body)),
        notes=(),
        best=_best_of(rivals) if any(cell and cell.best for row in body for cell in row) else "",
    )
    return replace(laid_out, notes=_notes(laid_out, {cell.id: str(cell.spec["task"]) for cell in sweep.cells}))


def _default(sweep: SweepRecord) -> TableSpec:
    """Rows over every axis that varies, one column for each task."""

    def varies(factor: str) -> bool:
        return len({factor_value(cell.labels, cell.spec, factor) for cell in sweep.cells}) > 1

    axes = sweep.grid.get("axes") or dict.fromkeys(axis for cell in sweep.cells for axis in cell.labels)
    rows = [axis for axis in axes if axis != "task" and varies(axis)]
    columns = ["task"] if rows and varies("task") else []
    return TableSpec(name=sweep.name, rows=tuple(rows or ["task"]), columns=tuple(columns))


def _cell(
    record: CellRecord, runs: Sequence[RunRecord], asked: str | None, metrics: Mapping[int, Mapping[str, float]]
) -> Cell | None:
    """The cell's place in a table of metric `asked`; None when its task has no such metric."""
    known = TEST_METRICS[Task(record.spec["task"])]
    selected_by = Metric(record.spec["select"]["metric"], Direction(record.spec["select"]["direction"]))
    own = selected_by.name.removeprefix("valid/")
    name = asked or own
    if name not in known and name != selected_by.name:
        return None

    def score_of(run: RunRecord) -> float | None:
        if name == selected_by.name:
            return run.valid_score
        return run.test_score if name == own else metrics.get(run.id, {}).get(f"test/{name}")

    standing = _standing(runs)
    states = Counter(run.state for run in standing)
    completed = [run for run in standing if run.state is RunState.COMPLETED]
    best = best_seed(completed, selected_by.direction)
    score = score_of(best) if best else None
    return Cell(
        id=record.id,
        metric=selected_by if name == selected_by.name else Metric(name, known[name]),
        selected_by=selected_by,
        state=(
            State.VALUE
            if score is not None
            else State.NOT_CONVERGE
            if states[RunState.DIVERGED] and not completed
            else State.HOLE
        ),
        run_id=best.id if best else None,
        seed=best.seed if best else None,
        validation=best.valid_score if best else None,
        score=score,
        summary=summarise([one for run in completed if (one := score_of(run)) is not None]),
        planned=len(standing),
        completed=len(completed),
        diverged=states[RunState.DIVERGED],
        failed=states[RunState.FAILED],
    )


def _standing(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The run that stands for each seed: its newest final generation, or else the newest."""
    ordered = sorted(runs, key=lambda run: (run.state in FINAL, run.generation))
    return list({run.seed: run for run in ordered}.values())


def _mark_best(body: list[list[Cell | None]], places: Sequence[tuple[int, int]]) -> None:
    """Mark the best of comparable cells, several when they are equal; one score alone is no best."""
    scores = {}
    for row, column in places:
        cell = body[row][column]
        if cell and cell.score is not None and isfinite(cell.score):
            scores[row, column] = cell.score if cell.metric.direction is Direction.MIN else -cell.score
    if len(scores) > 1:
        best = min(scores.values())
        for (row, column), score in scores.items():
            cell = body[row][column]
            if cell and score == best:
                body[row][column] = replace(cell, best=True)


def _best_of(rivals: Iterable[tuple[object, ...]]) -> str:
    columns = [column for column, *_ in rivals]
    among = "" if len(columns) == len(set(columns)) else ", among cells of the same task, data and metric"
    return f"best of its column{among}"


def _only(cells: Iterable[Cell | None]) -> Metric | None:
    metrics = {cell.metric for cell in cells if cell}
    return metrics.pop() if len(metrics) == 1 else None


def _notes(table: Table, tasks: Mapping[str, str]) -> tuple[str, ...]:
    cells = table.cells
    selected_by: dict[str, dict[str, None]] = {}
    for cell in cells:
        selected_by.setdefault(cell.selected_by.name, {})[tasks[cell.id]] = None
    if len(selected_by) == 1:
        rule = next(iter(selected_by))
    else:
        rule = " or ".join(f"{name} ({', '.join(of)})" for name, of in selected_by.items())
    split = "validation" if any(cell.metric == cell.selected_by for cell in cells) else "test"
    notes = [f"Per cell, the {split} score of the seed with the best {rule}{_over_seeds(table)}."] if cells else []
    if split == "validation":
        notes.append("Seed and weights were chosen by this very score, which flatters it.")
    good = {Direction.MAX: "higher is better", Direction.MIN: "lower is better"}
    metrics = dict.fromkeys(cell.metric for cell in cells)
    notes += [f"{'; '.join(f'{metric}: {good[metric.direction]}' for metric in metrics)}."] if metrics else []
    if any(cell.diverged for cell in cells):
        notes.append("not converge (k/n): k of n seeds diverged.")
    if any(cell.state is State.HOLE for cell in cells):
        notes.append("–: no score yet.")
    return tuple(notes)


def _over_seeds(table: Table) -> str:
    values = [cell for cell in table.cells if cell.state is State.VALUE]
    if not values:
        return ""
    if table.n is None:
        return "; beside it mean ± standard deviation over seeds, and their number n in parentheses"
    planned = {cell.planned for cell in values}
    of = "" if planned == {table.n} else f" of {planned.pop()}" if len(planned) == 1 else ""
    if table.n == 1:
        return f"; n = 1{of} seed{'s' if of else ''}"
    return f"; beside it mean ± standard deviation over n = {table.n}{of} seeds"
