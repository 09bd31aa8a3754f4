"""The evaluations of a sweep as cells of a table: each has the runs of its cell, and the scores that it gave them.

Which seed stands for a cell is decided by the validation within its own training, whatever an evaluation gave.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from kdx.components.registry import meant_by
from kdx.errors import KdxError
from kdx.grid.evaluations import ResolvedEvaluation, resolve_evaluation
from kdx.grid.plan import Plan
from kdx.grid.table_layout import SWEEP, evaluated
from kdx.store.records import CellRecord, DocumentRecord, EvaluationRecord, SweepRecord


@dataclass(frozen=True)
class EvaluatedCell:
    """One evaluation of the runs of a cell."""

    record: CellRecord
    """The cell as it was read; its id is that of the cell with the beginning of the evaluation's behind it."""
    cell_id: str
    evaluation: ResolvedEvaluation
    by_run: Mapping[int, EvaluationRecord]
    """Run id → its evaluation."""

    @cached_property
    def metrics(self) -> dict[int, dict[str, float]]:
        """Run id → metric, named as a test's → value."""
        return {
            run: {f"test/{name}": value for name, value in each.metrics.items()} for run, each in self.by_run.items()
        }

    @property
    def failed(self) -> frozenset[int]:
        """Ids of the runs whose evaluation failed."""
        return frozenset(run for run, each in self.by_run.items() if each.error is not None)

    @property
    def documents(self) -> dict[int, DocumentRecord]:
        """Run id → what it measured by document; runs for which that is not recorded are left out."""
        return {run: each.documents for run, each in self.by_run.items() if each.documents}


def evaluated_cells(sweep: SweepRecord) -> tuple[EvaluatedCell, ...]:
    """The evaluations that the sweep asks for and its cells can have, cell by cell.

    Each of several joined sweeps asks for evaluations of its own cells.
    """
    requests = {part.name: Plan.recorded(part.name, (), part.grid).evaluations for part in sweep.joins or (sweep,)}
    evaluations = []
    for cell in sweep.cells:
        wanted = requests[cell.labels[SWEEP] if sweep.joins else sweep.name]
        spec = cell.spec.known if wanted else None
        if spec is None:
            continue
        for request in wanted:
            # A table of learned positions, say, ends before some lengths; kdx plan lists what a cell cannot have.
            with meant_by({**spec.components, **request.recorded}), suppress(KdxError):
                evaluation = resolve_evaluation(spec, request)
                labels, as_read = evaluated(cell.labels, cell.spec, evaluation)
                key = evaluation.id
                by_run = {run: known[key] for run, known in sweep.evaluations.items() if key in known}
                record = replace(cell, id=f"{cell.id}-{key[:8]}", labels=labels, spec=as_read)
                evaluations.append(EvaluatedCell(record, cell.id, evaluation, by_run))
    return tuple(evaluations)
