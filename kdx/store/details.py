"""What is recorded of one run or of one cell, each from one state of the database."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select

from kdx.components.registry import know
from kdx.grid.difference import varying
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.store import evaluations, reading
from kdx.store.components import load_components
from kdx.store.database import Database
from kdx.store.recorded_grid import whole_cell
from kdx.store.records import AttemptRecord, EvaluationRecord, Provenance, RunRecord
from kdx.store.schema import cell, metric, run, sweep, sweep_cell


@dataclass(frozen=True)
class CellDetails:
    """A cell, and its runs in whichever sweep."""

    id: str
    spec: ResolvedSpec
    planners: Mapping[str, Mapping[str, str]]
    """Sweep whose newest plan has it → axis → the choice in the words of its grid; the most recent sweep first."""
    varies: tuple[str, ...]
    """The fields, dotted, in which the cells of the first of these sweeps differ."""
    runs: tuple[RunRecord, ...]
    """Every generation of every seed, by seed and generation."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Axis → choice, as the most recent of these sweeps words it."""
        return next(iter(self.planners.values()), {})


@dataclass(frozen=True)
class RunDetails:
    """A run with all that is recorded of it but its curves and its documents."""

    record: RunRecord
    cell: CellDetails
    attempts: tuple[AttemptRecord, ...]
    provenance: Provenance
    metrics: Mapping[str, float]
    """Every metric of the test, such as `test/bleu`, and `model/parameters`."""
    evaluations: tuple[EvaluationRecord, ...]


def run_details(database: Database, run_id: int) -> RunDetails:
    """What is recorded of a run.

    Raises:
        KdxError: there is no such run.
    """
    with database.read() as connection:
        record = reading.load_run(database, run_id)
        return RunDetails(
            record=record,
            cell=cell_details(database, record.cell_id),
            attempts=reading.attempts(database, run_id),
            provenance=reading.origins_of(database, [run_id])[run_id],
            metrics=reading.measured_by_test(connection, metric.c.run_id == run_id).get(run_id, {}),
            evaluations=tuple(evaluations.of_runs(database, [run_id]).get(run_id, {}).values()),
        )


def cell_details(database: Database, cell_id: str) -> CellDetails:
    """What is recorded of a cell that is there."""
    with database.read() as connection:
        text = connection.scalars(select(cell.c.spec).where(cell.c.id == cell_id)).one()
        rows = connection.execute(
            select(sweep.c.id, sweep.c.name, sweep_cell.c.labels)
            .join(sweep_cell)
            .where(sweep_cell.c.cell_id == cell_id, sweep_cell.c.planned)
            .order_by(sweep.c.updated.desc(), sweep.c.id.desc(), sweep_cell.c.ordinal.desc())
        ).all()
        # Of two choices of a sweep that come to this cell the first stays.
        planners = {row.name: row.labels for row in rows}
        others = reading.planned_cells(connection, rows[0].id) if rows else ()
        spec = whole_cell(cell_id, text)
        know(load_components(connection, spec.components))
        runs = reading.records(connection, run.c.cell_id == cell_id, every=True)
        return CellDetails(
            id=cell_id,
            spec=spec,
            planners=planners,
            varies=tuple(varying(whole_cell(row.id, row.spec).plain for row in others)),
            runs=tuple(sorted(runs, key=lambda record: (record.seed, record.generation))),
        )
