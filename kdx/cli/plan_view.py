"""What `kdx plan` shows of a plan: a picture of its runs, its cells, and what they cost."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kdx.cli.console import drawn, table
from kdx.cli.planned import names_of, ranges, without_time
from kdx.cli.wording import cell_name, count_of, run_name, size
from kdx.data.corpus import generator_of
from kdx.grid.difference import Difference
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.table_layout import NO_CHOICE, in_order
from kdx.report.sheet import Sheet, unless_repeated
from kdx.report.wording import LEVELS, word_of
from kdx.report.writers.text import TextSheet
from kdx.sanitize import sanitize
from kdx.store.records import RunState
from kdx.sweep.covered import Covered
from kdx.sweep.decide import Action
from kdx.sweep.forecast import Forecast, in_words, typical_error
from kdx.sweep.plan_forecast import PlanForecast, PlannedDecision, RunStatus

MOST_REASONS = 10
"""Reasons that have a line each unless every run is asked for."""
_BYTES = 4
"""Size of a parameter among the weights that a run keeps."""
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
            "cells_to_search": self._searched,
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
    def _searched(self) -> int:
        """Number of cells whose search has no winner yet."""
        return len(self.plan.cells) - len(self.plan.trained)

    @property
    def _cost(self) -> dict[str, Any]:
        """What it costs to train all that is left but for searches; None for what is unknown."""
        forecast, seconds = self.forecast, self.forecast.seconds()
        known = bool(seconds) or not (forecast.cells or self._searched)
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
        """Return a picture of the runs, why some are done in another way than the others, and what the rest costs.

        Args:
            every: whether each run has a line with its reason in place of the picture, and each cell one with its cost.
        """
        if every:
            for planned in self.forecast.runs:
                decision = planned.decision
                yield f"{decision.action:8}  {run_name(decision.run)}  ({_why(planned, decision.reason)})"
            yield from self._cells()
        elif self.forecast.runs:
            sheet = TextSheet(matrix(self.plan, self.forecast.runs))
            yield from (line.rstrip() for line in drawn(sheet).splitlines())
            yield from self._reasons()
        yield from filter(None, [self.cost_line()])

    def _reasons(self) -> Iterator[str]:
        """Return a line for each reason that the signs do not tell, with the number of its runs."""
        kinds: dict[tuple[str, str], list[str]] = {}
        for planned in self.forecast.runs:
            if not _is_plain(planned):
                action, reason = planned.decision.action.value, planned.decision.reason
                alike = _why(planned, _NUMBER.sub("…", reason))
                kinds.setdefault((action, alike), []).append(_why(planned, reason))
        listed = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
        for (action, alike), reasons in listed[:MOST_REASONS]:
            why = alike if len(set(reasons)) > 1 else reasons[0]
            yield f"{count_of(len(reasons), 'run')} to {action}: {why}"
        if len(listed) > MOST_REASONS:
            more = count_of(len(listed) - MOST_REASONS, "more reason")
            yield f"… and {more}; --all lists each run with its own"

    def _cells(self) -> Iterator[str]:
        """Return what a run of each cell costs, if that is known of any."""
        cells, known = self.forecast.cells.values(), self.forecast.forecasts
        if any(cell.id in known for cell, _ in cells):
            yield ""
            header = ("cell", "to train", "time of a run", "parameters", "memory", "from")
            yield from table(
                header, [(cell_name(cell), count, *_cost_words(known.get(cell.id))) for cell, count in cells]
            )

    def cost_line(self) -> str | None:
        """Return how many runs are left to train, how long that takes, and what they leave on the disk."""
        forecast = self.forecast
        to_train = sum(count for _, count in forecast.cells.values())
        parts = [f"{count_of(to_train, 'run')} to train"] if to_train else []
        if forecast.seconds():
            parts += self._time()
            parts += [without_time(forecast.evaluations)] if forecast.evaluations else []
        elif to_train:
            parts.append("time: unknown, since no similar run has completed; --probe measures it")
        elif forecast.evaluations:
            evaluations = count_of(forecast.evaluations, "evaluation")
            parts.append(f"time: unknown; {evaluations} to make, whose time is not recorded")
        if weights := self._weights():
            at_least = "at least " if forecast.unknown else ""
            parts.append(f"disk: {at_least}{size(weights)} of weights")
        return "; ".join(parts) or None

    def _time(self) -> Iterator[str]:
        forecast, seconds = self.forecast, sum(self.forecast.seconds())
        wall = forecast.wall_time(self.at_a_time)
        ends = (datetime.now() + timedelta(seconds=wall)).strftime("%a %H:%M" if wall < 6 * 86400 else "%Y-%m-%d")
        parts = [f"{in_words(seconds)} of computing"]
        if self.at_a_time > 1:
            parts.append(f"{in_words(wall)} with {count_of(self.at_a_time, 'run')} at a time")
        yield f"time: {', '.join(parts)}, done about {ends}"
        if (error := typical_error(forecast.errors)) is not None:
            yield f"forecasts were {error}"
        if unknown := len(forecast.unknown):
            missing = f"{unknown} of {len(forecast.cells)} cells"
            yield f"{missing} are not in it, since no similar run has completed; --probe measures them"

    def _weights(self) -> int:
        """Return the bytes of the weights that runs to train will keep, of cells whose number of them is known."""
        forecasts, cells = self.forecast.forecasts, self.forecast.cells.values()
        known = ((count, forecasts[cell.id].parameters) for cell, count in cells if cell.id in forecasts)
        return sum(_BYTES * count * (parameters or 0) for count, parameters in known)

    def notes(self) -> Iterator[str]:
        """Return a note if there is not enough memory for all that is left."""
        memory = self.forecast.memory(self.sharing)
        if memory and self.memory is not None and memory > self.memory:
            yield (
                f"memory: {size(memory)} with {count_of(self.sharing, 'run')} at a time, but there are"
                f" {size(self.memory)} here; --workers and --per-gpu set the runs at a time"
            )


def _is_plain(planned: PlannedDecision) -> bool:
    """Whether the sign of a run tells all that its reason does."""
    decision = planned.decision
    if planned.status is RunStatus.NEW:
        return decision.reason in ("new", "not started yet")
    return planned.status in (RunStatus.REUSED, RunStatus.RUNNING) and not (
        decision.record is None
        or decision.record.state in (RunState.DIVERGED, RunState.PRUNED)
        or decision.missing
        or decision.failed
        or planned.changed_evaluations
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
            {"name": each.name, "settings": each.settings.plain, "reason": reason}
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


Header = tuple[str, ...]
"""A word for each factor of a row, or of a column."""
TASK, APPROACH = "task", "approach"
MOST_ROWS = 40
"""Rows that are shown."""
_MOST_COLUMNS = 12
"""Columns up to which choices stand side by side; else they make rows."""
_MOST_SEEDS = 12
"""Seeds up to which each has its sign; of more the signs are counted."""
_MEANINGS = {
    "●": "done",
    "○": "to train",
    "◐": "to resume",
    "◎": "done, with evaluations to make",
    "!": "done, but its code changed since",
    "▶": "running in another kdx",
    "✗": "failed",
    "≈": "diverged",
    "‖": "paused",
    "x": "cancelled",
    "–": "excluded from reports",
    "?": "to train if comparisons stay open",
    "·": "not needed",
}
"""Sign → its meaning."""
_OF_STATUS = {
    RunStatus.REUSED: "●",
    RunStatus.STALE: "!",
    RunStatus.INVALIDATED: "–",
    RunStatus.RUNNING: "▶",
    RunStatus.FAILED: "✗",
    RunStatus.CANCELLED: "x",
    RunStatus.PAUSED: "‖",
    RunStatus.OPEN: "?",
    RunStatus.NOT_NEEDED: "·",
}


def matrix(plan: Plan, runs: Sequence[PlannedDecision]) -> Sheet:
    """Return the sheet of a plan that trains a cell, with the meaning of each sign that occurs."""
    signs = {planned.decision.run.key[:2]: _sign(planned) for planned in runs}
    rows, columns = _sides(plan.trained)
    places: dict[tuple[Header, Header], list[PlannedCell]] = {}
    for cell in plan.trained:
        places.setdefault((_header(cell, rows), _header(cell, columns)), []).append(cell)
    names, heads = (in_order([place[side] for place in places]) for side in (0, 1))
    words = [tuple(map(word_of, columns, head)) for head in heads]
    left_out = names[MOST_ROWS:]

    def text(name: Header, head: Header) -> str:
        of_cells = ([signs.get((cell.id, seed), " ") for seed in plan.seeds] for cell in places.get((name, head), ()))
        return " ".join(map(_of_seeds, of_cells))

    there = set(signs.values())
    notes = [", ".join(f"{sign} {meaning}" for sign, meaning in _MEANINGS.items() if sign in there)]
    if left_out:
        first, last = (LEVELS.join(name) for name in (left_out[0], left_out[-1]))
        notes.insert(0, f"… and {count_of(len(left_out), 'more row')}, from {first} to {last}; --all lists their runs")
    cells = count_of(len({cell.id for cell in plan.trained}), "cell")
    return Sheet(
        title=plan.name,
        key=(plan.name,),
        headers=(*rows, *(head[-1] if head else "runs" for head in words)),
        names=len(rows),
        rows=tuple(
            (*shown, *(text(name, head) for head in heads))
            for name, shown in zip(names[:MOST_ROWS], unless_repeated(names), strict=False)
        ),
        notes=tuple(notes),
        above=tuple(head[:-1] for head in words) if len(columns) > 1 else (),
        caption=f"{cells} × seed{'' if len(plan.seeds) == 1 else 's'} {ranges(plan.seeds)}",
    )


def _sign(planned: PlannedDecision) -> str:
    decision = planned.decision
    if decision.trains:
        return "◐" if decision.action is Action.CONTINUE else "○"
    if decision.action is Action.EVALUATE:
        return "◎"
    if planned.status is RunStatus.REUSED and decision.record and decision.record.state is RunState.DIVERGED:
        return "≈"
    # What another kdx has to do first is to be trained, or resumed, by it.
    return _OF_STATUS.get(planned.status, "▶")


def _sides(cells: Sequence[PlannedCell]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the factors of rows and those of columns.

    Rows are approaches, or else the first axis; further axes are rows too while there are too many columns.
    """
    axes = list(dict.fromkeys(axis for cell in cells for axis in cell.labels if axis != TASK))
    axes.sort(key=lambda axis: axis != APPROACH)
    task = (TASK,) if axes and len({cell.spec.task for cell in cells}) > 1 else ()
    for count in range(1, len(axes)):
        columns = (*task, *axes[count:])
        if len({_header(cell, columns) for cell in cells}) <= _MOST_COLUMNS:
            return tuple(axes[:count]), columns
    return tuple(axes) or (TASK,), task


def _header(cell: PlannedCell, factors: Sequence[str]) -> Header:
    words = {TASK: cell.spec.task, **cell.labels}
    return tuple(words.get(factor, NO_CHOICE) for factor in factors)


def _of_seeds(signs: Sequence[str]) -> str:
    if len(signs) <= _MOST_SEEDS:
        return "".join(signs).rstrip()
    return " ".join(f"{count}{sign}" for sign, count in Counter(signs).items())
