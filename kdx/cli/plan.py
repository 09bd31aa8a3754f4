"""`kdx plan`: shows what a sweep would do, run by run, and why, and what it will cost."""

from collections import Counter
from typing import Annotated

import typer

from kdx.cli.budget import what_is_left_out
from kdx.cli.console import say
from kdx.cli.context import Answering
from kdx.cli.options import (
    GridFile,
    Hardware,
    Limit,
    MaxRuns,
    Set,
    set_options,
)
from kdx.cli.plan_view import PlanView, impossible_evaluations
from kdx.cli.planned import announce, change_of, removed_runs
from kdx.cli.search_forecast import search_lines
from kdx.cli.wording import cell_name, count_of
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid import MOST_RUNS
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.store.database import database_at
from kdx.sweep.gpus import memory, visible_gpus
from kdx.sweep.plan_forecast import PlanForecast, RunStatus, forecast_plan
from kdx.sweep.probe import probe as measure
from kdx.sweep.rehearsal import rehearse
from kdx.sweep.server_process import require_torch
from kdx.tune.search import with_winners


def plan(
    grid: GridFile,
    context: Answering,
    at_a_time: Hardware,
    budget: Limit,
    set_: Set = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Train cells of unknown cost for a few steps, to measure them.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="List each run with its reason, and each cell.")] = False,
    max_runs: MaxRuns = MOST_RUNS,
) -> None:
    """Show what a sweep would run, why, and at what cost. Starts nothing and writes no database.

    Example: kdx plan quickstart --set seeds=5

    Example: kdx plan quickstart --budget 6h
    """
    plan = load_grid(grid, most_runs=max_runs, given=set_ or ())
    gpus = visible_gpus()
    runs, sharing = at_a_time.runs(len(gpus)), at_a_time.sharing(len(gpus))
    notes = [*plan.notes, *prepare_data(plan, large=False)]
    change = None
    if database_at(context.db).exists():
        with context.read() as database:
            plan = with_winners(database, plan)
            change = change_of(database, plan, grid, context)
            forecast = forecast_plan(database, plan)
            of_searches = list(search_lines(plan, database, runs))
    else:
        forecast = forecast_plan(None, plan)
        of_searches = list(search_lines(plan, None, runs))
    if probe:
        forecast = _probed(plan, forecast, notes)
    covered = forecast.within(budget, runs) if budget else None
    view = PlanView(plan, forecast, change, runs, sharing, memory(gpus), covered)
    context.answer(view.plain, lambda: view.lines(every=every))
    if context.json:
        return
    notes += [*of_searches, *impossible_evaluations(plan), *view.notes()]
    if open_ := sum(planned.status is RunStatus.OPEN for planned in forecast.runs):
        notes.append(f"at most {open_} more runs, if comparisons stay open; the time does not include them")
    notes.append(removed_runs(change, plan, context) or "")
    notes.append((budget and covered and what_is_left_out(budget, covered, plan)) or "")
    for note in filter(None, notes):
        say(f"note: {note}")
    options = set_options(set_)
    options += f" --workers {at_a_time.workers}" if at_a_time.workers else ""
    options += f" --per-gpu {at_a_time.per_gpu}" if at_a_time.per_gpu else ""
    options += f" --max-runs {max_runs}" if max_runs != MOST_RUNS else ""
    options += f" --budget {budget.text}" if budget else ""
    say(f"{_counts(plan, forecast)}; next: {context.command('sweep', grid, options=options)}")


def _counts(plan: Plan, forecast: PlanForecast) -> str:
    searched = len(plan.cells) - len(plan.trained)
    cells = len({cell.id for cell in plan.trained})
    if not cells:
        return f"{count_of(searched, 'cell')} to search"
    actions = Counter(planned.decision.action.value for planned in forecast.runs)
    stale = sum(planned.status is RunStatus.STALE for planned in forecast.runs)
    of_skipped = f" ({stale} of them stale)" if stale else ""
    words = [f"{count:,} to {action}{of_skipped if action == 'skip' else ''}" for action, count in actions.items()]
    seeds = plan.seed_rule or count_of(len(plan.seeds), "seed")
    text = f"{count_of(len(forecast.runs), 'run')} of {count_of(cells, 'cell')} × {seeds}: {', '.join(words)}"
    if searched:
        text += f"; {count_of(searched, 'more cell')} to search"
    evaluations = sum(len(each.decision.to_make) for each in forecast.runs if each.decision.action.value != "skip")
    return f"{text}; {count_of(evaluations, 'evaluation')} to make" if evaluations else text


def _probed(plan: Plan, forecast: PlanForecast, notes: list[str]) -> PlanForecast:
    """Return the forecast with what a few steps of each cell of unknown cost take."""
    cells = forecast.unknown
    if not cells:
        return forecast
    require_torch()
    announce(plan)
    rehearse(plan)
    measured = {}
    for number, cell in enumerate(cells, 1):
        try:
            measured[cell.id] = measure(cell)
        except KdxError as error:
            notes.append(f"{cell_name(cell)} could not be measured: {error.problem}")
        say(f"measured {number} of {len(cells)} cells")
    return forecast.with_forecasts(measured)
