"""`kdx plan`: shows what a sweep would do, run by run, and why, and what it will cost."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Annotated

import typer

from kdx.cli.console import say
from kdx.cli.context import Answering
from kdx.cli.options import GridFile, Hardware, Limit, MaxRuns, Set, set_options
from kdx.cli.plan_view import PlanView, impossible_evaluations
from kdx.cli.planned import announce, change_of, removed_runs, what_is_left_out
from kdx.cli.wording import cell_name, count_of
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid import MOST_RUNS
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.tuning import Tuning
from kdx.store.database import Database, database_at
from kdx.sweep.forecast import in_words, makespan
from kdx.sweep.gpus import memory, visible_gpus
from kdx.sweep.plan_forecast import PlanForecast, RunStatus, expected_seconds, forecast_plan
from kdx.sweep.probe import probe as measure
from kdx.sweep.rehearsal import rehearse
from kdx.sweep.server_process import require_torch
from kdx.tune.search import Searching, with_winners


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
    """Show what a sweep would run, why, and at what cost. Writes no database, and trains nothing
    without --probe.

    Example: kdx plan quickstart --set seeds=5

    Example: kdx plan quickstart --budget 6h
    """
    plan = load_grid(grid, most_runs=max_runs, given=set_ or ())
    gpus = visible_gpus()
    runs, sharing = at_a_time.runs(len(gpus)), at_a_time.sharing(len(gpus))
    notes = [*plan.notes, *prepare_data(plan, large=False)]
    change = None
    with context.read() if database_at(context.db).exists() else nullcontext() as database:
        if database is not None:
            plan = with_winners(database, plan)
            change = change_of(database, plan, grid, context)
        forecast = forecast_plan(database, plan)
        of_searches = list(search_lines(plan, database, runs))
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


def search_lines(plan: Plan, database: Database | None, at_a_time: int) -> Iterator[str]:
    """Return what is searched before winners are trained, and how long both will take, in one line each."""
    cells = [cell for cell in plan.cells if cell.search and not cell.won]
    by_search = {cell.search.id: cell for cell in cells if cell.search}
    if not by_search:
        return
    ended = dict.fromkeys(by_search, 0)
    seconds: Mapping[str, float | None] = {}
    if database is not None:
        search = Searching(database, plan)
        search.look()
        ended = {key: len(search.trials(key)) for key in by_search}
        seconds = expected_seconds(database, plan)
    tunings = {key: _tuning_of(cell) for key, cell in by_search.items()}
    left = [
        (cell, max(0, tunings[key].trials - ended[key]) * len(tunings[key].seeds)) for key, cell in by_search.items()
    ]
    steps = sum(count * cell.spec.training.steps for cell, count in left)
    tuning = _tuning_of(cells[0])
    done = f", {sum(ended.values())} of them ended" if any(ended.values()) else ""
    seeds = count_of(len(tuning.seeds), "tuning seed")
    yield (
        f"first a search: {count_of(len(by_search), 'cell')} × {count_of(tuning.trials, 'trial')} × {seeds}{done}; "
        f"{count_of(sum(count for _, count in left), 'run')} to train, {steps:,} steps at most "
        f"(sampler {tuning.sampler}, pruner {tuning.pruner})"
    )
    runs = count_of(len(cells) * len(plan.seeds), "run")
    seeds = count_of(len(plan.seeds), "seed")
    if rule := plan.seed_rule:
        runs, seeds = f"{len(cells) * rule.min} to {runs}", rule.number
    yield f"then {count_of(len(cells), 'winner')} × {seeds} = {runs}"
    known = {cell.id: time for cell in cells if (time := seconds.get(cell.id)) is not None}
    if not known:
        yield "time of both: unknown, since no similar run has completed"
        return
    of_search = [known[cell.id] for cell, count in left if cell.id in known for _ in range(count)]
    of_winners = [known[cell.id] for cell in cells if cell.id in known for _ in plan.seeds]
    missing = len({cell.id for cell in cells}) - len(known)
    at_most = " at most" if plan.seed_rule else ""
    yield (
        f"time: the search {in_words(makespan(of_search, at_a_time))} at most, the winners "
        f"{in_words(makespan(of_winners, at_a_time))}{at_most}, with {count_of(at_a_time, 'run')} at a time"
        + (
            f"; {missing} of {len(by_search)} cells are not in it, since no similar run has completed"
            if missing
            else ""
        )
    )


def _tuning_of(cell: PlannedCell) -> Tuning:
    assert cell.search is not None
    return cell.search.tuning
