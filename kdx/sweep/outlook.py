"""A plan as a difference from what is recorded, and what it will cost to make it whole."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from kdx.grid.plan import Plan, PlannedCell
from kdx.run_files.files import files_beside, files_of
from kdx.store import evaluations, reading
from kdx.store.costs import costs
from kdx.store.database import Database
from kdx.store.records import FINAL, RunState
from kdx.sweep.budget import Budget, Covered, covered, evaluations_to_make, remaining
from kdx.sweep.decide import Action, Decision
from kdx.sweep.decisions import decisions_in
from kdx.sweep.forecast import Forecast, Forecaster, makespan
from kdx.sweep.stale import changed_evaluations, changed_modules

SAMPLED = 50
"""Number of completed runs whose files are weighed."""
_WEIGHT = 4
"""Bytes of a weight in a file."""
_WHILE_TRAINING = 8
"""Times its weights that a run has on disk while it is trained: two checkpoints with weights and two means of the
gradient, the best weights and their copy."""


class Standing(StrEnum):
    """What a run of a plan is to the database."""

    NEW = "new"
    """It was never started."""
    CONTINUED = "continued"
    """It was started, and goes on or begins again."""
    RETRIED = "retried"
    """Somebody asked that it be tried again: it failed, was cancelled, or has a result of an earlier generation."""
    REUSED = "reused"
    """It has a result, and no code that it depends on has changed since."""
    STALE = "stale"
    """It has a result, and code that it depends on has changed since."""
    INVALIDATED = "invalidated"
    """It has a result, which somebody took out of tables."""
    RUNNING = "running"
    """Another kdx works at it."""
    FAILED = "failed"
    """It failed, and nobody asked for more."""
    CANCELLED = "cancelled"
    """Somebody cancelled it, and nobody asked for more."""
    PAUSED = "paused"
    """Other runs of its cell failed alike, and nobody asked for more."""
    OPEN = "open"
    """It is a seed that the plan's rule may need, which the seeds before it will show."""
    NOT_NEEDED = "not needed"
    """It is a seed that the plan's rule does not need."""


@dataclass(frozen=True)
class PlannedDecision:
    """What is to be done with a run, and what it is to the database."""

    decision: Decision
    standing: Standing
    changed: tuple[str, ...] = ()
    """Of a stale run, the modules that changed."""
    changed_evaluations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Id of an evaluation that is stale → the modules that changed since it was made."""

    @property
    def trains(self) -> bool:
        """Whether this kdx would train it."""
        return self.decision.action in (Action.START, Action.CONTINUE)


@dataclass(frozen=True)
class Outlook:
    """What a sweep of a plan would do, and what that will cost."""

    runs: tuple[PlannedDecision, ...]
    forecasts: Mapping[str, Forecast]
    """Cell id → what one run of it will cost, for cells that have runs to train; those of which nobody knows lack."""
    errors: tuple[float, ...] = ()
    """See `Forecaster.errors`."""
    kept: float | None = None
    """Bytes of files that a completed run of this plan has kept on average; None: none has."""

    @property
    def cells(self) -> dict[str, tuple[PlannedCell, int]]:
        """Cell id → the cell and how many runs of it are to be trained, for those that have any."""
        found: dict[str, tuple[PlannedCell, int]] = {}
        for each in self.runs:
            if each.trains:
                cell = each.decision.run.cell
                found[cell.id] = cell, found.get(cell.id, (cell, 0))[1] + 1
        return found

    @property
    def unknown(self) -> tuple[PlannedCell, ...]:
        """Cells that have runs to train of which nobody knows what they will cost."""
        return tuple(cell for cell, _ in self.cells.values() if cell.id not in self.forecasts)

    def with_forecasts(self, more: Mapping[str, Forecast]) -> "Outlook":
        """The same with what was measured."""
        return replace(self, forecasts={**self.forecasts, **more})

    def seconds(self) -> list[float]:
        """Wall time of each run that is to be trained, in their order, as far as it is known."""
        whole = self._seconds_of_cells
        left = (remaining(each.decision, whole) for each in self.runs if each.trains)
        return [seconds for seconds in left if seconds is not None]

    @property
    def _seconds_of_cells(self) -> dict[str, float | None]:
        return {cell: forecast.seconds for cell, forecast in self.forecasts.items()}

    @property
    def evaluations(self) -> int:
        """How many are to be made; no time is known of them, and none is in `seconds`."""
        return evaluations_to_make(each.decision for each in self.runs)

    def wall_time(self, at_a_time: int) -> float:
        """Until the last of those has ended, if so many are trained at a time."""
        return makespan(self.seconds(), at_a_time)

    def memory(self, at_a_time: int) -> int | None:
        """Bytes that so many runs at a time hold at most; None: not known of any."""
        if not self.cells:
            return 0
        known = [self.forecasts[cell].memory for cell in self.cells if cell in self.forecasts]
        largest = sorted(filter(None, known), reverse=True)
        runs = min(at_a_time, sum(each.trains for each in self.runs))
        return largest[0] * runs if largest else None

    def within(self, budget: Budget, at_a_time: int) -> Covered:
        """What of it a budget is enough for, from the beginning of the command on."""
        left = budget.deadline(at_a_time) - budget.begun
        return covered([each.decision for each in self.runs], self._seconds_of_cells, at_a_time, left)

    def disk(self, at_a_time: int) -> int | None:
        """Bytes that the runs will take at most, while they are trained and once they are; None: not known."""
        trained = sum(count for _, count in self.cells.values())
        weights = [_WEIGHT * one.parameters for one in self.forecasts.values() if one.parameters]
        if not trained:
            return 0
        if not weights and self.kept is None:
            return None
        kept = self.kept if self.kept is not None else sum(weights) / len(weights)
        return int(kept * trained + max(weights, default=0) * _WHILE_TRAINING * min(at_a_time, trained))


def outlook(database: Database | None, plan: Plan) -> Outlook:
    """Of a plan, given what a database and the files beside it have.

    Args:
        database: None: there is none yet.
    """
    if database is None:
        decisions = decisions_in(None, plan)
        return Outlook(tuple(PlannedDecision(one, _standing(one)) for one in decisions), {})
    with database.read():
        decisions = decisions_in(database, plan)
        finished = [one.record.id for one in decisions if one.record and one.record.state in FINAL]
        modules = reading.modules(database, finished) if finished else {}
        made = evaluations.modules(database, finished) if finished and plan.evaluations else {}
        trained = {one.run.cell.id: one.run.cell for one in decisions if one.action in (Action.START, Action.CONTINUE)}
        forecaster = Forecaster(costs(database, trained) if trained else ())
    forecasts = _forecasts(forecaster, trained)
    runs = []
    for one in decisions:
        of_run = modules.get(one.record.id) if one.record else None
        out = one.record is not None and one.record.invalidated is not None
        cell = one.run.cell
        changed = () if out else changed_modules(cell.spec, of_run)
        of_evaluations = made.get(one.record.id, {}) if one.record and not out else {}
        asked = [each.id for each in plan.evaluations_of(cell.id)]
        stale = changed_evaluations(cell.spec, asked, of_evaluations)
        runs.append(PlannedDecision(one, _standing(one, changed), changed, stale))
    kept = _mean_kept(files_beside(database.location), decisions) if trained else None
    return Outlook(tuple(runs), forecasts, forecaster.errors, kept)


def expected_seconds(database: Database, plan: Plan) -> dict[str, float | None]:
    """Cell id → wall time of a whole run; None where no like run has completed."""
    cells = {cell.id: cell for cell in plan.cells}
    found = _forecasts(Forecaster(costs(database, cells)), cells)
    return {key: found[key].seconds if key in found else None for key in cells}


def _forecasts(forecaster: Forecaster, cells: Mapping[str, PlannedCell]) -> dict[str, Forecast]:
    return {
        key: forecast
        for key, cell in cells.items()
        if (forecast := forecaster.forecast(key, cell.spec.model_dump(mode="json", by_alias=True)))
    }


def _standing(decision: Decision, changed: tuple[str, ...] = ()) -> Standing:
    record = decision.record
    if decision.awaits_look:
        return Standing.OPEN
    if not decision.needed:
        return Standing.NOT_NEEDED
    if decision.pause is not None:
        return Standing.PAUSED
    if record is None:
        return Standing.NEW
    if record.invalidated is not None:
        return Standing.INVALIDATED
    match record.state:
        case RunState.PENDING if record.attempt or record.generation:
            return Standing.RETRIED
        case RunState.PENDING:
            return Standing.NEW
        case RunState.FAILED:
            return Standing.FAILED
        case RunState.CANCELLED:
            return Standing.CANCELLED
        case RunState.RUNNING | RunState.INTERRUPTED:
            return Standing.RUNNING if decision.action is Action.WAIT else Standing.CONTINUED
    return Standing.STALE if changed else Standing.REUSED


def _mean_kept(files: Path, decisions: Iterable[Decision]) -> float | None:
    completed = [one.record for one in decisions if one.record and one.record.state is RunState.COMPLETED][:SAMPLED]
    sizes = [size for record in completed if (size := sum(file.size for file in files_of(files, record)))]
    return sum(sizes) / len(sizes) if sizes else None
