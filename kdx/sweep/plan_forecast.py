"""Forecasts a plan: what a sweep would do with each run, which results are stale, and what the rest will cost."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kdx.cell_code import code_of, code_of_evaluation
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.store import evaluations, reading
from kdx.store.database import Database
from kdx.store.records import FINAL, EvaluationRecord, RunState
from kdx.store.status import costs
from kdx.sweep.budget import Budget
from kdx.sweep.covered import Covered, covered, evaluations_to_make, remaining
from kdx.sweep.decide import Action, Decision, decisions_in
from kdx.sweep.forecast import Forecast, Forecaster, makespan


class RunStatus(StrEnum):
    """The status of a planned run in the database."""

    NEW = "new"
    """It was never started."""
    CONTINUED = "continued"
    """It was started, and resumes or starts again."""
    RETRIED = "retried"
    """Somebody asked that it be tried again: it failed, was cancelled, or has a result of an earlier generation."""
    REUSED = "reused"
    """It has a result, and no code that it depends on has changed since."""
    STALE = "stale"
    """It has a result, and code that it depends on has changed since."""
    INVALIDATED = "invalidated"
    """It has a result, which somebody excluded from reports."""
    RUNNING = "running"
    """Another kdx computes it."""
    FAILED = "failed"
    """It failed, and nobody asked for more."""
    CANCELLED = "cancelled"
    """Somebody cancelled it, and nobody asked for more."""
    PAUSED = "paused"
    """Other runs of its cell failed in the same way, and nobody asked for more."""
    OPEN = "open"
    """It has a seed that the plan's rule may need, depending on the seeds before it."""
    NOT_NEEDED = "not needed"
    """It has a seed that the plan's rule does not need."""


@dataclass(frozen=True)
class PlannedDecision:
    """What a sweep would do with a run, and the status of the run."""

    decision: Decision
    status: RunStatus
    changed: tuple[str, ...] = ()
    """Changed modules, if the run is stale."""
    changed_evaluations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Id of a stale evaluation → the modules that changed since it was made."""


@dataclass(frozen=True)
class PlanForecast:
    """What a sweep of a plan would do, and what that will cost."""

    runs: tuple[PlannedDecision, ...]
    forecasts: Mapping[str, Forecast]
    """Cell id → expected cost of a run, for cells that have runs to train; cells of unknown cost are missing."""
    errors: tuple[float, ...] = ()
    """See `Forecaster.errors`."""

    @property
    def cells(self) -> dict[str, tuple[PlannedCell, int]]:
        """Cell id → the cell and its number of runs to train, for cells that have any."""
        cells: dict[str, tuple[PlannedCell, int]] = {}
        for planned in self.runs:
            if planned.decision.trains:
                cell = planned.decision.run.cell
                cells[cell.id] = cell, cells.get(cell.id, (cell, 0))[1] + 1
        return cells

    @property
    def unknown(self) -> tuple[PlannedCell, ...]:
        """Cells that have runs to train, and whose cost is unknown."""
        return tuple(cell for cell, _ in self.cells.values() if cell.id not in self.forecasts)

    def with_forecasts(self, more: Mapping[str, Forecast]) -> "PlanForecast":
        """Return the same with further forecasts."""
        return replace(self, forecasts={**self.forecasts, **more})

    def seconds(self) -> list[float]:
        """Return the wall time of each run to train, in their order, for runs whose time is known."""
        whole = self._seconds_of_cells
        left = (remaining(planned.decision, whole) for planned in self.runs if planned.decision.trains)
        return [seconds for seconds in left if seconds is not None]

    @property
    def _seconds_of_cells(self) -> dict[str, float | None]:
        return {cell: forecast.seconds for cell, forecast in self.forecasts.items()}

    @property
    def evaluations(self) -> int:
        """Number of evaluations to make; their time is unknown and not in `seconds`."""
        return evaluations_to_make(planned.decision for planned in self.runs)

    def wall_time(self, at_a_time: int) -> float:
        """Return the seconds until the last run whose time is known has ended."""
        return makespan(self.seconds(), at_a_time)

    def memory(self, at_a_time: int) -> int | None:
        """Return the most bytes that runs at a time use together; None if unknown."""
        if not self.cells:
            return 0
        known = [self.forecasts[cell].memory for cell in self.cells if cell in self.forecasts]
        largest = sorted(filter(None, known), reverse=True)
        runs = min(at_a_time, sum(planned.decision.trains for planned in self.runs))
        return largest[0] * runs if largest else None

    def within(self, budget: Budget, at_a_time: int) -> Covered:
        """Return what a whole budget is enough for."""
        decisions = [planned.decision for planned in self.runs]
        return covered(decisions, self._seconds_of_cells, at_a_time, budget.seconds)


def forecast_plan(database: Database | None, plan: Plan) -> PlanForecast:
    """Return the forecast of a plan, given a database and the files beside it.

    Args:
        database: the database; None if there is none yet.
    """
    if database is None:
        new = decisions_in(None, plan)
        return PlanForecast(tuple(PlannedDecision(decision, _status(decision)) for decision in new), {})
    with database.read():
        decisions = decisions_in(database, plan)
        finished = [decision.record.id for decision in decisions if decision.record and decision.record.state in FINAL]
        trained = {decision.run.cell.id: decision.run.cell for decision in decisions if decision.trains}
        origins = reading.origins_of(database, finished) if finished else {}
        evaluated = evaluations.of_runs(database, finished) if finished and plan.evaluations else {}
        forecaster = Forecaster(costs(database, trained) if trained else ())
    runs = []
    for decision in decisions:
        record, cell = decision.record, decision.run.cell
        changed: tuple[str, ...] = ()
        stale: Mapping[str, tuple[str, ...]] = {}
        if record is not None and record.invalidated is None:
            planned = plan.evaluations_of(cell.id)
            changed = changed_modules(cell.spec, origins[record.id].modules if record.id in origins else None)
            stale = changed_evaluations(planned, evaluated.get(record.id, {}))
        runs.append(PlannedDecision(decision, _status(decision, changed), changed, stale))
    return PlanForecast(tuple(runs), _forecasts(forecaster, trained), forecaster.errors)


def expected_seconds(database: Database, plan: Plan) -> dict[str, float | None]:
    """Return cell id → wall time of a whole run, None if no similar run has completed."""
    cells = {cell.id: cell for cell in plan.cells}
    forecasts = _forecasts(Forecaster(costs(database, cells)), cells)
    return {key: forecasts[key].seconds if key in forecasts else None for key in cells}


def _forecasts(forecaster: Forecaster, cells: Mapping[str, PlannedCell]) -> dict[str, Forecast]:
    forecasts = {key: forecaster.forecast(key, json.loads(cell.spec.text)) for key, cell in cells.items()}
    return {key: forecast for key, forecast in forecasts.items() if forecast is not None}


def _status(decision: Decision, changed: tuple[str, ...] = ()) -> RunStatus:
    record = decision.record
    if decision.awaits_look:
        return RunStatus.OPEN
    if not decision.needed:
        return RunStatus.NOT_NEEDED
    if decision.pause is not None:
        return RunStatus.PAUSED
    if record is None:
        return RunStatus.NEW
    if record.invalidated is not None:
        return RunStatus.INVALIDATED
    match record.state:
        case RunState.PENDING if record.attempt or record.generation:
            return RunStatus.RETRIED
        case RunState.PENDING:
            return RunStatus.NEW
        case RunState.FAILED:
            return RunStatus.FAILED
        case RunState.CANCELLED:
            return RunStatus.CANCELLED
        case RunState.RUNNING | RunState.INTERRUPTED:
            return RunStatus.RUNNING if decision.action is Action.WAIT else RunStatus.CONTINUED
    return RunStatus.STALE if changed else RunStatus.REUSED


def changed_modules(spec: CellSpec, modules: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the modules that changed since a run of the cell was computed, including new and removed ones.

    Args:
        modules: module → hash, as recorded with the run; None if it was not started.
    """
    return () if modules is None else _changed(code_of(spec).modules, modules)


def changed_evaluations(
    planned: Iterable[ResolvedEvaluation], recorded: Mapping[str, EvaluationRecord]
) -> dict[str, tuple[str, ...]]:
    """Return id → the modules that changed since the evaluation was made, for evaluations with any.

    Args:
        planned: the evaluations that a plan has of a run.
        recorded: id → evaluation of the run.
    """
    before = {key: each.provenance.modules for key, each in recorded.items() if each.provenance}
    changed = {
        each.id: _changed(code_of_evaluation(each).modules, modules)
        for each in planned
        if (modules := before.get(each.id)) is not None
    }
    return {key: modules for key, modules in changed.items() if modules}


def _changed(now: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, ...]:
    if now == before:
        return ()
    return tuple(sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name)))
