"""What `kdx plan` shows of a plan: its runs, its cells, and what they will cost."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kdx.cli.budget import names_of, without_time
from kdx.cli.wording import cell_name, count_of, run_name, size
from kdx.data.corpus import generator_of
from kdx.grid.difference import Difference
from kdx.grid.plan import Plan, PlannedCell
from kdx.report.writers.rows import to_text
from kdx.sanitize import sanitize
from kdx.sweep.forecast import Basis, Forecast, in_words, typical_error
from kdx.sweep.plan_forecast import PlanForecast, PlannedDecision, RunStatus

MOST_LINES = 40
"""Largest number of runs, or of cells, that have a line each unless every one is asked for."""
_MOST_MODULES = 3
_NUMBER = re.compile(r"\d[\d.e+-]*")


@dataclass(frozen=True)
class PlannedRunView:
    """A run of a plan, and what a sweep would do with it."""

    name: str
    cell: str
    seed: int
    choices: Mapping[str, str]
    run: int | None
    """Its number, if it is recorded."""
    action: str
    reason: str
    status: RunStatus
    changed_modules: Sequence[str]
    """Why it is stale."""
    evaluations: Sequence[Mapping[str, Any]]
    """The settings of evaluations to make."""
    stale_evaluations: Sequence[Mapping[str, Any]]
    """Settings and changed modules."""
    impossible_evaluations: Sequence[Mapping[str, Any]]
    """Name, settings and reason."""

    def why(self, reason: str) -> str:
        """Return the reason, and what is stale."""
        text = reason
        if self.changed_modules:
            text += f"; stale: {_first(self.changed_modules)} changed since"
        if self.stale_evaluations:
            modules = sorted({module for each in self.stale_evaluations for module in each["changed_modules"]})
            text += f"; {count_of(len(self.stale_evaluations), 'evaluation')} stale: {_first(modules)} changed since"
        return sanitize(text)


@dataclass(frozen=True)
class CellCost:
    """A cell with runs to train, and what one of them costs; None for what is unknown."""

    name: str
    cell: str
    choices: Mapping[str, str]
    to_train: int
    seconds: float | None = None
    parameters: int | None = None
    peak_memory: int | None = None
    basis: str | None = None
    """Name of a `Basis`."""
    basis_runs: int | None = None


@dataclass(frozen=True)
class Cost:
    """What it costs to train all that is left; None for what is unknown."""

    workers: int
    """Runs at a time."""
    sharing: int
    """How many of them share one memory."""
    seconds: float | None
    wall_seconds: float | None
    cells_unknown: int
    evaluations_not_in_it: int
    errors: Sequence[float]
    """Of past forecasts."""
    peak_memory: int | None
    memory_available: int | None
    disk: int | None
    disk_free: int | None


@dataclass(frozen=True)
class PlanView:
    """A plan, as people and programs see it; docs/reference/json.md has the keys."""

    sweep: str
    runs: Sequence[PlannedRunView]
    cells: Sequence[CellCost]
    leaving: Mapping[str, Any]
    """What the newest plan of the sweep has and this one lacks, and why."""
    corpora: Sequence[Mapping[str, Any]]
    cost: Cost
    budget: Mapping[str, Any] | None = None

    def lines(self, *, every: bool) -> Iterator[str]:
        """Return a line for each run, or for runs to which the same happens; then what a run of each cell costs.

        Args:
            every: whether many runs and cells have a line each, too.
        """
        if every or len(self.runs) <= MOST_LINES:
            yield from (f"{run.action:8}  {run.name}  ({run.why(run.reason)})" for run in self.runs)
        else:
            kinds = Counter((run.action, run.why(_NUMBER.sub("…", run.reason))) for run in self.runs)
            yield from to_text(("", "runs", "why"), [(action, count, why) for (action, why), count in kinds.items()])
        known = [cell for cell in self.cells if cell.seconds is not None]
        if known:
            yield ""
            if every or len(self.cells) <= MOST_LINES:
                header = ("cell", "to train", "time of a run", "parameters", "memory", "from")
                yield from to_text(header, [(cell.name, cell.to_train, *_cost_words(cell)) for cell in self.cells])
            else:
                seconds = [cell.seconds or 0.0 for cell in known]
                yield f"a run takes {in_words(min(seconds))} to {in_words(max(seconds))}; --all lists the cells"

    def notes(self) -> Iterator[str]:
        """Return what it costs to train all that is left, in one note each: time, memory and disk."""
        cost = self.cost
        if not cost.seconds:
            if cost.evaluations_not_in_it and not self.cells:
                evaluations = count_of(cost.evaluations_not_in_it, "evaluation")
                yield f"time: unknown; {evaluations} to make, whose time is recorded nowhere"
            return
        wall = cost.wall_seconds or 0.0
        ends = (datetime.now() + timedelta(seconds=wall)).strftime("%a %H:%M" if wall < 6 * 86400 else "%Y-%m-%d")
        parts = [f"{in_words(cost.seconds)} of computing"]
        if cost.workers > 1:
            parts.append(f"{in_words(wall)} with {count_of(cost.workers, 'run')} at a time")
        text = f"time: {', '.join(parts)}, done about {ends}"
        if (error := typical_error(cost.errors)) is not None:
            text += f"; forecasts were {error}"
        if cost.cells_unknown:
            missing = f"{cost.cells_unknown} of {len(self.cells)} cells"
            text += f"; {missing} are not in it, for no like run has completed: see --probe"
        if cost.evaluations_not_in_it:
            text += f"; {without_time(cost.evaluations_not_in_it)}"
        yield text
        if cost.peak_memory and cost.memory_available is not None and cost.peak_memory > cost.memory_available:
            yield (
                f"memory: {size(cost.peak_memory)} with {count_of(cost.sharing, 'run')} at a time, but there are"
                f" {size(cost.memory_available)} here; --workers and --per-gpu set the runs at a time"
            )
        if cost.disk is not None and cost.disk_free is not None:
            short = ", which is too little" if cost.disk > cost.disk_free else ""
            yield f"disk: about {size(cost.disk)}, of {size(cost.disk_free)} that are free{short}"


def view(
    plan: Plan,
    forecast: PlanForecast,
    change: Difference | None,
    at_a_time: int,
    sharing: int,
    available: int | None,
    free: int | None,
) -> PlanView:
    """Return what there is to show of a plan.

    Args:
        change: how it differs from the recorded plan of its sweep, if there is one.
        at_a_time: how many runs are trained at a time.
        sharing: how many of them share one memory.
        available: bytes of memory; None if unknown.
        free: free bytes on the disk with the files of runs; None if unknown.
    """
    seconds = forecast.seconds()
    known = bool(seconds) or not forecast.cells
    cost = Cost(
        workers=at_a_time,
        sharing=sharing,
        seconds=sum(seconds) if known else None,
        wall_seconds=forecast.wall_time(at_a_time) if known else None,
        cells_unknown=len(forecast.unknown),
        evaluations_not_in_it=forecast.evaluations,
        errors=forecast.errors,
        peak_memory=forecast.memory(sharing),
        memory_available=available,
        disk=forecast.disk(at_a_time),
        disk_free=free,
    )
    return PlanView(
        sweep=plan.name,
        runs=[_run_view(plan, planned) for planned in forecast.runs],
        cells=[_cell_cost(cell, count, forecast.forecasts.get(cell.id)) for cell, count in forecast.cells.values()],
        leaving={
            "runs": change.runs_gone if change else 0,
            "cells": change.cells_that_lose_runs if change else (),
            "seeds": change.seeds_gone if change else (),
            "changes": change.changes if change else (),
        },
        corpora=list(_corpora(plan)),
        cost=cost,
    )


def _run_view(plan: Plan, planned: PlannedDecision) -> PlannedRunView:
    decision, cell = planned.decision, planned.decision.run.cell
    stale = planned.changed_evaluations
    return PlannedRunView(
        name=run_name(decision.run),
        cell=cell.id,
        seed=decision.run.seed,
        choices=cell.labels,
        run=decision.record and decision.record.id,
        action=decision.action.value,
        reason=decision.reason,
        status=planned.status,
        changed_modules=planned.changed,
        evaluations=[each.settings for each in decision.missing],
        stale_evaluations=[
            {"settings": each.settings, "changed_modules": stale[each.id]}
            for each in plan.evaluations_of(cell.id)
            if each.id in stale
        ],
        impossible_evaluations=[
            {"name": each.name, "settings": each.settings.asked, "reason": reason}
            for each, reason in plan.impossible_evaluations(cell.id)
        ],
    )


def _cell_cost(cell: PlannedCell, count: int, forecast: Forecast | None) -> CellCost:
    if forecast is None:
        return CellCost(cell_name(cell), cell.id, cell.labels, count)
    return CellCost(
        cell_name(cell),
        cell.id,
        cell.labels,
        count,
        forecast.seconds,
        forecast.parameters,
        forecast.memory,
        forecast.basis.name.lower(),
        forecast.runs,
    )


def _corpora(plan: Plan) -> Iterator[Mapping[str, Any]]:
    """Return each corpus that runs of the plan are trained on, where the grid first names it."""
    first = {cell.spec.data.corpus: cell for cell in reversed(plan.cells)}
    for corpus, cell in reversed(first.items()):
        place = cell.place("data.corpus")
        state = "generated" if generator_of(corpus) else "prepared"
        yield {"corpus": corpus, "state": state, "place": place and str(place)}


def _cost_words(cell: CellCost) -> tuple[str, ...]:
    if cell.seconds is None or cell.basis is None:
        return "unknown", "–", "–", ""
    basis = str(Basis[cell.basis.upper()])
    if cell.basis_runs:
        basis = f"{cell.basis_runs} {basis}"
    if cell.basis_runs == 1:
        basis = basis.replace("runs", "run", 1).replace("differ", "differs")
    return (
        in_words(cell.seconds),
        "–" if cell.parameters is None else f"{cell.parameters:,}",
        "–" if cell.peak_memory is None else size(cell.peak_memory),
        basis,
    )


def _first(modules: Sequence[str]) -> str:
    shown = list(modules[:_MOST_MODULES])
    if len(modules) > _MOST_MODULES:
        shown[-1:] = [f"{len(modules) - _MOST_MODULES + 1} more modules"]
    return ", ".join(shown)


def impossible_evaluations(plan: Plan) -> Iterator[str]:
    """Return a line for each evaluation that some cells cannot have, and for each reason, with these cells."""
    cells = {cell.id: cell for cell in reversed(plan.cells)}
    lacking: dict[tuple[str, str], list[PlannedCell]] = {}
    for cell in reversed(cells.values()):
        for evaluation, reason in plan.impossible_evaluations(cell.id):
            lacking.setdefault((str(evaluation), reason), []).append(cell)
    for (evaluation_of, reason), group in lacking.items():
        count = f"{len(group)} of {len(cells)} cells"
        yield sanitize(f"evaluation {evaluation_of} cannot be made of {count}{names_of(group)}: {reason}")


def difference_lines(change: Difference, now: Plan, before: Plan) -> Iterator[str]:
    """Return how a grid differs from another: what explains it, then the cells of one of them only."""
    yield from (sanitize(str(each)) for each in change.changes)
    named = {cell.id: cell for plan in (before, now) for cell in reversed(plan.cells)}
    for sign, cells in (("-", change.gone), ("+", change.new)):
        for cell in cells[:MOST_LINES]:
            yield f"{sign} {cell_name(named[cell])}"
        if len(cells) > MOST_LINES:
            yield f"{sign} and {len(cells) - MOST_LINES:,} more cells"


def difference_record(change: Difference, now: Plan, before: Plan) -> dict[str, Any]:
    """Return the same for programs."""
    choices = {cell.id: cell.labels for plan in (before, now) for cell in reversed(plan.cells)}
    listed = {
        side: [{"cell": cell, "choices": choices[cell]} for cell in cells]
        for side, cells in (("gone", change.gone), ("new", change.new))
    }
    return {"sweep": now.name, **vars(change), **listed}
