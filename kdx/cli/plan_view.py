"""What `kdx plan` shows of a plan: its runs, its cells, and what they cost."""

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
from kdx.sweep.covered import Covered
from kdx.sweep.forecast import Forecast, in_words, typical_error
from kdx.sweep.plan_forecast import PlanForecast, PlannedDecision

MOST_LINES = 40
"""Largest number of runs, or of cells, that have a line each unless every one is asked for."""
_MOST_MODULES = 3
_NUMBER = re.compile(r"\d[\d.e+-]*")


@dataclass(frozen=True)
class PlanView:
    """A plan, and what a sweep of it would do and cost here."""

    plan: Plan
    forecast: PlanForecast
    change: Difference | None
    """How it differs from the recorded plan of its sweep, if there is one."""
    at_a_time: int
    """How many runs are trained at a time."""
    sharing: int
    """How many of them share one memory."""
    memory: int | None
    """Bytes of memory here; None if unknown."""
    covered: Covered | None = None
    """What the budget is enough for, if there is one."""

    @property
    def plain(self) -> dict[str, Any]:
        """The plan for programs; docs/reference/json.md has the keys."""
        forecast, change, covered = self.forecast, self.change, self.covered
        left_out = covered and covered.left_out
        return {
            "sweep": self.plan.name,
            "runs": [_run_record(self.plan, planned) for planned in forecast.runs],
            "cells": [
                _cell_record(cell, count, forecast.forecasts.get(cell.id)) for cell, count in forecast.cells.values()
            ],
            "leaving": {
                "runs": change.runs_gone if change else 0,
                "cells": change.cells_that_lose_runs if change else (),
                "seeds": change.seeds_gone if change else (),
                "changes": change.changes if change else (),
            },
            "corpora": list(_corpora(self.plan)),
            "cost": self._cost,
            "budget": covered
            and {
                "left_out": left_out and [{"cell": run.cell.id, "seed": run.seed} for run in left_out],
                "seconds": covered.seconds,
            },
        }

    @property
    def _cost(self) -> dict[str, Any]:
        """What it costs to train all that is left; None for what is unknown."""
        forecast, seconds = self.forecast, self.forecast.seconds()
        known = bool(seconds) or not forecast.cells
        return {
            "workers": self.at_a_time,
            "sharing": self.sharing,
            "seconds": sum(seconds) if known else None,
            "wall_seconds": forecast.wall_time(self.at_a_time) if known else None,
            "cells_unknown": len(forecast.unknown),
            "evaluations_not_in_it": forecast.evaluations,
            "errors": forecast.errors,
            "peak_memory": forecast.memory(self.sharing),
            "memory_available": self.memory,
        }

    def lines(self, *, every: bool) -> Iterator[str]:
        """Return a line for each run, or for runs to which the same happens; then what a run of each cell costs.

        Args:
            every: whether many runs and cells have a line each, too.
        """
        runs, cells = self.forecast.runs, self.forecast.cells.values()
        if every or len(runs) <= MOST_LINES:
            for planned in runs:
                decision = planned.decision
                yield f"{decision.action:8}  {run_name(decision.run)}  ({_why(planned, decision.reason)})"
        else:
            kinds = Counter(
                (planned.decision.action.value, _why(planned, _NUMBER.sub("…", planned.decision.reason)))
                for planned in runs
            )
            yield from to_text(("", "runs", "why"), [(action, count, why) for (action, why), count in kinds.items()])
        known = self.forecast.forecasts
        seconds = [known[cell.id].seconds for cell, _ in cells if cell.id in known]
        if seconds:
            yield ""
            if every or len(cells) <= MOST_LINES:
                header = ("cell", "to train", "time of a run", "parameters", "memory", "from")
                rows = [(cell_name(cell), count, *_cost_words(known.get(cell.id))) for cell, count in cells]
                yield from to_text(header, rows)
            else:
                yield f"a run takes {in_words(min(seconds))} to {in_words(max(seconds))}; --all lists the cells"

    def notes(self) -> Iterator[str]:
        """Return what it costs to train all that is left, in one note each: time and memory."""
        forecast, seconds = self.forecast, sum(self.forecast.seconds())
        if not seconds:
            if forecast.evaluations and not forecast.cells:
                evaluations = count_of(forecast.evaluations, "evaluation")
                yield f"time: unknown; {evaluations} to make, whose time is recorded nowhere"
            return
        wall = forecast.wall_time(self.at_a_time)
        ends = (datetime.now() + timedelta(seconds=wall)).strftime("%a %H:%M" if wall < 6 * 86400 else "%Y-%m-%d")
        parts = [f"{in_words(seconds)} of computing"]
        if self.at_a_time > 1:
            parts.append(f"{in_words(wall)} with {count_of(self.at_a_time, 'run')} at a time")
        text = f"time: {', '.join(parts)}, done about {ends}"
        if (error := typical_error(forecast.errors)) is not None:
            text += f"; forecasts were {error}"
        if unknown := len(forecast.unknown):
            missing = f"{unknown} of {len(forecast.cells)} cells"
            text += f"; {missing} are not in it, for no like run has completed: see --probe"
        if forecast.evaluations:
            text += f"; {without_time(forecast.evaluations)}"
        yield text
        memory = forecast.memory(self.sharing)
        if memory and self.memory is not None and memory > self.memory:
            yield (
                f"memory: {size(memory)} with {count_of(self.sharing, 'run')} at a time, but there are"
                f" {size(self.memory)} here; --workers and --per-gpu set the runs at a time"
            )


def _run_record(plan: Plan, planned: PlannedDecision) -> dict[str, Any]:
    decision, cell = planned.decision, planned.decision.run.cell
    stale = planned.changed_evaluations
    return {
        "name": run_name(decision.run),
        "cell": cell.id,
        "seed": decision.run.seed,
        "choices": cell.labels,
        "run": decision.record and decision.record.id,
        "action": decision.action,
        "reason": decision.reason,
        "status": planned.status,
        "changed_modules": planned.changed,
        "evaluations": [each.settings for each in decision.missing],
        "stale_evaluations": [
            {"settings": each.settings, "changed_modules": stale[each.id]}
            for each in plan.evaluations_of(cell.id)
            if each.id in stale
        ],
        "impossible_evaluations": [
            {"name": each.name, "settings": each.settings.asked, "reason": reason}
            for each, reason in plan.impossible_evaluations(cell.id)
        ],
    }


def _why(planned: PlannedDecision, reason: str) -> str:
    """Return the reason, and what is stale."""
    text, stale = reason, planned.changed_evaluations
    if planned.changed:
        text += f"; stale: {_first(planned.changed)} changed since"
    if stale:
        modules = sorted({module for changed in stale.values() for module in changed})
        text += f"; {count_of(len(stale), 'evaluation')} stale: {_first(modules)} changed since"
    return sanitize(text)


def _first(modules: Sequence[str]) -> str:
    shown = list(modules[:_MOST_MODULES])
    if len(modules) > _MOST_MODULES:
        shown[-1:] = [f"{len(modules) - _MOST_MODULES + 1} more modules"]
    return ", ".join(shown)


def _cell_record(cell: PlannedCell, count: int, forecast: Forecast | None) -> dict[str, Any]:
    return {
        "name": cell_name(cell),
        "cell": cell.id,
        "choices": cell.labels,
        "to_train": count,
        "seconds": forecast and forecast.seconds,
        "parameters": forecast and forecast.parameters,
        "peak_memory": forecast and forecast.memory,
        "basis": forecast and forecast.basis.name.lower(),
        "basis_runs": forecast and forecast.runs,
    }


def _cost_words(forecast: Forecast | None) -> tuple[str, ...]:
    if forecast is None:
        return "unknown", "–", "–", ""
    basis = f"{forecast.runs} {forecast.basis}" if forecast.runs else str(forecast.basis)
    if forecast.runs == 1:
        basis = basis.replace("runs", "run", 1).replace("differ", "differs")
    return (
        in_words(forecast.seconds),
        "–" if forecast.parameters is None else f"{forecast.parameters:,}",
        "–" if forecast.memory is None else size(forecast.memory),
        basis,
    )


def _corpora(plan: Plan) -> Iterator[Mapping[str, Any]]:
    """Return each corpus that runs of the plan are trained on, where the grid first names it."""
    first = {cell.spec.data.corpus: cell for cell in reversed(plan.cells)}
    for corpus, cell in reversed(first.items()):
        place = cell.place("data.corpus")
        state = "generated" if generator_of(corpus) else "prepared"
        yield {"corpus": corpus, "state": state, "place": place and str(place)}


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
