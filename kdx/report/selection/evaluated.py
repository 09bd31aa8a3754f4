"""The evaluations of a sweep as cells of a table: each has the runs of its cell, and the scores that it gave them.

Which seed stands for a cell is decided by the validation within its own training, whatever an evaluation gave.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kdx.components.registry import meant_by
from kdx.errors import KdxError
from kdx.grid.evaluations import AskedEvaluation, EvaluationSettings, ResolvedEvaluation, resolve_evaluation
from kdx.grid.table_layout import evaluated
from kdx.store.records import CellRecord, DocumentRecord, EvaluationRecord, RunRecord, SweepRecord


@dataclass(frozen=True)
class EvaluatedCell:
    """One evaluation of the runs of a cell."""

    record: CellRecord
    """The cell as it was read; its id is that of the cell with the beginning of the evaluation's behind it."""
    cell_id: str
    evaluation: ResolvedEvaluation
    made: Mapping[int, EvaluationRecord]
    """Run id → what was made of it."""

    def runs(self, runs: list[RunRecord]) -> list[RunRecord]:
        """Those of the cell, with the score that this evaluation gave each in the place of its test's."""
        own = self.record.spec.selection_metric.removeprefix("valid/")
        return [run._replace(test_score=self.metrics.get(run.id, {}).get(f"test/{own}")) for run in runs]

    @property
    def metrics(self) -> dict[int, dict[str, float]]:
        """Run id → metric, named as a test's → value."""
        return {run: {f"test/{name}": value for name, value in one.metrics.items()} for run, one in self.made.items()}

    @property
    def documents(self) -> dict[int, DocumentRecord]:
        """Run id → what it measured by document; runs for which that is not recorded are left out."""
        return {run: one.documents for run, one in self.made.items() if one.documents}


@dataclass(frozen=True)
class ImpossibleEvaluation:
    """One evaluation that the runs of a cell cannot have, although an evaluation of its task has these settings."""

    record: CellRecord
    asked: AskedEvaluation
    reason: str


def evaluated_cells(sweep: SweepRecord) -> tuple[tuple[EvaluatedCell, ...], tuple[ImpossibleEvaluation, ...]]:
    """Those that the sweep asks for and its cells can have, cell by cell; and those that its cells cannot have.

    Of joined sweeps, each asks for evaluations of its own cells.
    """
    own = _asked(sweep)
    of_sweeps = {one.name: _asked(one) for one in sweep.joins}
    found, impossible = [], []
    for cell in sweep.cells if own or any(of_sweeps.values()) else ():
        asked = dict.fromkeys(each for name in cell.sweeps for each in of_sweeps[name]) if sweep.joins else own
        known = cell.spec.known
        if known is None:
            continue
        with meant_by(known.components):
            for each in asked:
                try:
                    one = resolve_evaluation(known, each)
                except KdxError as error:
                    if each.is_of(known.task):
                        impossible.append(ImpossibleEvaluation(cell, each, error.problem))
                    continue
                labels, spec = evaluated(cell.labels, cell.spec, one)
                made = {run: there[one.id] for run, there in sweep.evaluations.items() if one.id in there}
                record = replace(cell, id=f"{cell.id}-{one.id[:8]}", labels=labels, spec=spec)
                found.append(EvaluatedCell(record, cell.id, one, made))
    return tuple(found), tuple(impossible)


def _asked(sweep: SweepRecord) -> list[AskedEvaluation]:
    return [
        AskedEvaluation(str(one["name"]), EvaluationSettings.model_validate(one["settings"]))
        for one in sweep.grid.get("evaluations", ())
    ]
