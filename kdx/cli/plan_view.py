"""What `kdx plan` shows of a plan: its runs, its cells, and what they will cost."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from kdx.cli.amounts import count_of, size
from kdx.cli.wording import cell_name, run_name, without_time
from kdx.data.corpus import generator_of
from kdx.grid.difference import Difference
from kdx.grid.plan import Plan
from kdx.report.writers.rows import to_text
from kdx.sanitize import sanitize
from kdx.sweep.budget import Covered
from kdx.sweep.durations import in_words
from kdx.sweep.forecast import Forecast, typical_error
from kdx.sweep.plan_forecast import PlanForecast, PlannedDecision, RunStatus

MOST_LINES = 40
"""Largest number of runs, or of cells, that have a line each unless every one is asked for."""
_MOST_MODULES = 3
_NUMBER = re.compile(r"\d[\d.e+-]*")


def lines(found: PlanForecast, *, every: bool) -> Iterator[str]:
    """A line for each run, or for runs to which the same happens; then what runs of each cell will cost.

    Args:
        every: whether many runs and cells have a line each, too.
    """
    if every or len(found.runs) <= MOST_LINES:
        for each in found.runs:
            yield f"{each.decision.action.value:8}  {run_name(each.decision.run)}  ({sanitize(_reason(each))})"
    else:
        kinds = Counter((each.decision.action.value, each.status, _kind(each)) for each in found.runs)
        rows = [(action, count, kind) for (action, _, kind), count in kinds.items()]
        yield from to_text(("", "runs", "why"), rows)
    cells = found.cells
    known = [(cell, count, found.forecasts.get(cell.id)) for cell, count in cells.values()]
    if any(forecast for _, _, forecast in known):
        yield ""
        if every or len(known) <= MOST_LINES:
            header = ("cell", "to train", "time of a run", "parameters", "memory", "from")
            yield from to_text(header, [(cell_name(cell), count, *_costs(one)) for cell, count, one in known])
        else:
            yield from _range_of([one for _, _, one in known if one])


def _reason(each: PlannedDecision) -> str:
    """Why it is so."""
    again = each.status is RunStatus.RETRIED and each.decision.record and each.decision.record.generation
    return f"{each.decision.reason}{f', generation {again}' if again else ''}{_stale(each)}"


def _kind(each: PlannedDecision) -> str:
    """The reason without what only this run has."""
    record = each.decision.record
    if record is not None and each.status in (RunStatus.REUSED, RunStatus.STALE):
        return f"{record.state.value}{_stale(each)}"
    return f"{_NUMBER.sub('…', each.decision.reason)}{_stale(each)}"


def _stale(each: PlannedDecision) -> str:
    text = f"; stale: {_first(each.changed)} changed since" if each.changed else ""
    if each.changed_evaluations:
        modules = tuple(sorted({module for those in each.changed_evaluations.values() for module in those}))
        stale = count_of(len(each.changed_evaluations), "evaluation")
        text += f"; {stale} stale: {_first(modules)} changed since"
    return text


def _first(modules: Sequence[str]) -> str:
    shown = list(modules[:_MOST_MODULES])
    if len(modules) > _MOST_MODULES:
        shown[-1:] = [f"{len(modules) - _MOST_MODULES + 1} more modules"]
    return ", ".join(shown)


def _costs(forecast: Forecast | None) -> tuple[str, ...]:
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


def _range_of(known: list[Forecast]) -> Iterator[str]:
    seconds = [one.seconds for one in known]
    yield f"a run takes {in_words(min(seconds))} to {in_words(max(seconds))}"
    if parameters := [one.parameters for one in known if one.parameters]:
        yield f"it has {min(parameters):,} to {max(parameters):,} parameters"
    if memory := [one.memory for one in known if one.memory]:
        yield f"it holds at most {size(min(memory))} to {size(max(memory))}"


def costs(found: PlanForecast, at_a_time: int, sharing: int, available: int | None, free: int | None) -> Iterator[str]:
    """What it costs to train all that is left, in one note each: time, memory and disk.

    Args:
        at_a_time: how many runs are trained at a time.
        sharing: how many of them share one memory.
        available: bytes of memory that there are; None: not known.
        free: bytes that are free on the disk with the files of runs; None: not known.
    """
    seconds = found.seconds()
    if not seconds:
        if found.evaluations and not found.cells:
            yield f"time: unknown; {count_of(found.evaluations, 'evaluation')} to make, whose time is recorded nowhere"
        return
    wall = found.wall_time(at_a_time)
    ends = (datetime.now() + timedelta(seconds=wall)).strftime("%a %H:%M" if wall < 6 * 86400 else "%Y-%m-%d")
    parts = [f"{in_words(sum(seconds))} of computing"]
    if at_a_time > 1:
        parts.append(f"{in_words(wall)} with {count_of(at_a_time, 'run')} at a time")
    parts.append(f"done about {ends}")
    text = f"time: {', '.join(parts)}"
    if (off := typical_error(found.errors)) is not None:
        text += f"; forecasts were {off}"
    if unknown := len(found.unknown):
        text += f"; {unknown} of {len(found.cells)} cells are not in it, for no like run has completed: see --probe"
    if found.evaluations:
        text += f"; {without_time(found.evaluations)}"
    yield text
    held = found.memory(sharing)
    if held is not None and available is not None and held > available:
        yield (
            f"memory: {size(held)} with {count_of(sharing, 'run')} at a time, but there are {size(available)} here;"
            f" --workers and --per-gpu say how many go at a time"
        )
    needed = found.disk(at_a_time)
    if needed is not None and free is not None:
        short = ", which is too little" if needed > free else ""
        yield f"disk: about {size(needed)}, of {size(free)} that are free{short}"


def to_json(
    plan: Plan,
    found: PlanForecast,
    change: Difference | None,
    at_a_time: int,
    sharing: int,
    available: int | None,
    free: int | None,
) -> dict[str, Any]:
    """The whole plan; see docs/reference/json.md."""
    seconds = found.seconds()
    return {
        "sweep": plan.name,
        "runs": [_run_to_json(plan, each) for each in found.runs],
        "cells": [
            {
                "cell": cell.id,
                "choices": dict(cell.labels),
                "to_train": count,
                "seconds": forecast and forecast.seconds,
                "parameters": forecast and forecast.parameters,
                "peak_memory": forecast and forecast.memory,
                "basis": forecast and forecast.basis.name.lower(),
                "basis_runs": forecast and forecast.runs,
            }
            for cell, count in found.cells.values()
            for forecast in [found.forecasts.get(cell.id)]
        ],
        "leaving": leaving_to_json(change),
        "corpora": list(_corpora_to_json(plan)),
        "cost": {
            "workers": at_a_time,
            "seconds": sum(seconds) if seconds or not found.cells else None,
            "wall_seconds": found.wall_time(at_a_time) if seconds or not found.cells else None,
            "cells_unknown": len(found.unknown),
            "evaluations_not_in_it": found.evaluations,
            "errors": list(found.errors),
            "peak_memory": found.memory(sharing),
            "memory_available": available,
            "disk": found.disk(at_a_time),
            "disk_free": free,
        },
    }


def _corpora_to_json(plan: Plan) -> Iterator[dict[str, Any]]:
    """Each corpus that runs of the plan are trained on, where the grid first names it."""
    first = {cell.spec.data.corpus: cell for cell in reversed(plan.cells)}
    for corpus, cell in reversed(first.items()):
        place = cell.place("data.corpus")
        state = "generated" if generator_of(corpus) else "prepared"
        yield {"corpus": corpus, "state": state, "place": place and str(place)}


def _run_to_json(plan: Plan, each: PlannedDecision) -> dict[str, Any]:
    decision = each.decision
    return {
        "cell": decision.run.cell.id,
        "seed": decision.run.seed,
        "choices": dict(decision.run.cell.labels),
        "action": decision.action.value,
        "status": each.status.value,
        "reason": decision.reason,
        "changed_modules": list(each.changed),
        "stale_evaluations": [
            {"settings": dict(one.settings), "changed_modules": list(each.changed_evaluations[one.id])}
            for one in plan.evaluations_of(decision.run.cell.id)
            if one.id in each.changed_evaluations
        ],
        "run": decision.record and decision.record.id,
        "evaluations": [dict(one.settings) for one in decision.missing],
        "impossible_evaluations": [
            {"name": asked.name, "settings": asked.settings.asked, "reason": reason}
            for asked, reason in plan.impossible_evaluations(decision.run.cell.id)
        ],
    }


def leaving_to_json(change: Difference | None) -> dict[str, Any]:
    """What the newest plan of the sweep has and this one lacks, and why."""
    return {
        "runs": change.runs_gone if change else 0,
        "cells": change.cells_that_lose_runs if change else [],
        "seeds": change.seeds_gone if change else [],
        "changes": [{"field": one.field, "gone": one.gone, "new": one.new} for one in change.changes] if change else [],
    }


def difference_lines(found: Difference, now: Plan, before: Plan) -> Iterator[str]:
    """How a grid differs from another: what explains it, then the cells of one of them only."""
    for change in found.changes:
        yield sanitize(str(change))
    named = {cell.id: cell for plan in (before, now) for cell in reversed(plan.cells)}
    for sign, cells in (("-", found.gone), ("+", found.new)):
        for cell in cells[:MOST_LINES]:
            yield f"{sign} {cell_name(named[cell])}"
        if len(cells) > MOST_LINES:
            yield f"{sign} and {len(cells) - MOST_LINES:,} more cells"


def difference_to_json(found: Difference, now: Plan, before: Plan) -> dict[str, Any]:
    """The same, whole."""
    named = {cell.id: cell for plan in (before, now) for cell in reversed(plan.cells)}

    def listed(cells: tuple[str, ...]) -> list[dict[str, Any]]:
        return [{"cell": cell, "choices": dict(named[cell].labels)} for cell in cells]

    return {
        "sweep": now.name,
        "gone": listed(found.gone),
        "new": listed(found.new),
        "shared": list(found.shared),
        "seeds_gone": found.seeds_gone,
        "seeds_new": found.seeds_new,
        "changes": [{"field": one.field, "gone": one.gone, "new": one.new} for one in found.changes],
    }


def budget_to_json(found: Covered) -> dict[str, Any]:
    """What a budget leaves out, and how long the rest takes; null in the place of what nobody knows."""
    left_out = found.left_out
    return {
        "left_out": None if left_out is None else [{"cell": run.cell.id, "seed": run.seed} for run in left_out],
        "seconds": found.seconds,
    }
