"""Records made by hand, as the store would give them."""

from collections.abc import Mapping, Sequence
from typing import Any

from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.spec import CellSpec
from kdx.report.statistics.metric import Metric
from kdx.report.table.comparisons import Mark
from kdx.report.tables import Table
from kdx.store.records import CellRecord, Provenance, RunRecord, RunState, SweepRecord
from kdx.tasks import TASKS


def metric_of(name: str) -> Metric:
    """A metric as the tasks that have it declare it."""
    measures = {name: measure for task in TASKS.definitions() for name, measure in task.test_metrics.items()}
    return Metric(name, measures[name.removeprefix("valid/").partition("/")[0]])


def cell(id: str, task: str = "translation", labels: Mapping[str, str] | None = None, **choices: Any) -> CellRecord:
    """A cell of the grid; `choices` are fields of the spec, and its labels unless given."""
    length = {"training": {"batch_tokens": 1280}} if task == "prediction" else {}
    spec = CellSpec.model_validate({"task": task, "data": {"corpus": "synthetic"}, **length, **choices})
    labels = {"task": task, **{axis: str(word) for axis, word in choices.items()}} if labels is None else labels
    return CellRecord(id, 0, labels, ResolvedSpec.of(spec))


def run(
    cell_id: str,
    seed: int,
    valid: float | None = None,
    test: float | None = None,
    state: RunState = RunState.COMPLETED,
    *,
    id: int | None = None,
    generation: int = 0,
    error: str | None = None,
    undertrained: str | None = None,
) -> RunRecord:
    """A run of that cell; its id is derived from seed and generation unless given."""
    return RunRecord(
        id=100 * generation + seed if id is None else id,
        cell_id=cell_id,
        seed=seed,
        generation=generation,
        state=state,
        attempt=1,
        owner=None,
        lease_left=None,
        progress_step=10,
        stalls=0,
        valid_score=valid,
        valid_step=None if valid is None else 10,
        test_score=test,
        error=error,
        seconds=1.0,
        undertrained=undertrained,
    )


def scored(cell_id: str, *scores: tuple[float, float]) -> list[RunRecord]:
    """Completed runs with seeds 0, 1, …, from (validation, test) scores."""
    return [run(cell_id, seed, *pair) for seed, pair in enumerate(scores)]


def seeded(cell_id: str, *scores: float) -> list[RunRecord]:
    """Completed runs with seeds 0, 1, … and ids of their own, from test scores that are their validation scores too."""
    first = 1000 * (1 + sum(map(ord, cell_id)))
    return [run(cell_id, seed, score, score, id=first + seed) for seed, score in enumerate(scores)]


def sweep(
    cells: Sequence[CellRecord],
    runs: Sequence[RunRecord],
    *,
    tables: Sequence[Mapping[str, Any]] = (),
    axes: Sequence[str] = (),
    metrics: Mapping[int, Mapping[str, float]] | None = None,
    provenance: Mapping[int, Provenance] | None = None,
    name: str = "grid",
) -> SweepRecord:
    """A sweep of these cells and runs."""
    grid = {"tables": list(tables), "axes": list(axes)}
    return SweepRecord(1, name, 0.0, 0.0, grid, tuple(cells), tuple(runs), metrics or {}, provenance or {})


def marks(table: Table) -> list[Mark | None]:
    """How each cell stands to the best of its column, row by row."""
    return [table.marks.get(at) for at in table.layout.places]
