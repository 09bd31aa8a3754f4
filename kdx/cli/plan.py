"""`kdx plan`: shows what a sweep would do, run by run, and why, and what it will cost."""

from collections import Counter
from typing import Annotated

import typer

from kdx.cli import completion, plan_view
from kdx.cli.amounts import count_of
from kdx.cli.console import out_json, out_lines, say
from kdx.cli.custom_code import announce
from kdx.cli.options import (
    DATABASE,
    MOST_RUNS,
    Db,
    Files,
    Json,
    MaxRuns,
    Replace,
    Seeds,
    Set,
    WithinBudget,
    at_a_time_options,
    grid_options,
    in_database,
    seeds_of,
    with_options,
)
from kdx.cli.planned import change_of, leaving
from kdx.cli.running import budget_from_now, search_lines
from kdx.cli.wording import cell_name, impossible_evaluations, what_is_left_out
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid.difference import Contents, difference
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.run_files.files import free_bytes
from kdx.shell import kdx_command, shell_word
from kdx.store.database import database_at, open_database
from kdx.sweep.at_a_time import AtATime
from kdx.sweep.budget import Budget
from kdx.sweep.gpus import memory, visible_gpus
from kdx.sweep.plan_forecast import PlanForecast, RunStatus, forecast_plan
from kdx.sweep.probe import probe
from kdx.sweep.rehearsal import rehearse
from kdx.tune.search import with_winners


@with_options(at_a_time=at_a_time_options)
def plan(
    grid: Annotated[
        str, typer.Argument(autocompletion=completion.grids, help="A YAML file, or the name of a shipped grid.")
    ],
    db: Db = DATABASE,
    files_in: Files = None,
    seeds: Seeds = None,
    set_: Set = None,
    at_a_time: AtATime = AtATime(),
    probe: Annotated[
        bool, typer.Option("--probe", help="Measure cells of which no like run has completed by a few steps of each.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            autocompletion=completion.grids,
            metavar="GRID",
            help="Compare with another grid; no database is looked at.",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="A line for each run and cell, however many; else many are summed up."),
    ] = False,
    max_runs: MaxRuns = MOST_RUNS,
    replace: Replace = False,
    budget: WithinBudget = None,
    json: Json = False,
) -> None:
    """Show what a sweep would run, why, and at what cost. Starts nothing and writes no database.

    Example: kdx plan quickstart --seeds 5

    Example: kdx plan new.yaml --against old.yaml

    Example: kdx plan quickstart --budget 6h
    """
    say_plan(
        grid,
        db,
        seeds,
        set_,
        at_a_time,
        probe=probe,
        against=against,
        every=every,
        max_runs=max_runs,
        replace=replace,
        budget=budget,
        json=json,
    )


def say_plan(
    grid: str,
    db: str,
    seeds: str | None,
    set_: list[str] | None,
    at_a_time: AtATime,
    *,
    max_runs: int,
    replace: bool,
    budget: str | None,
    probe: bool = False,
    against: str | None = None,
    every: bool = False,
    json: bool = False,
) -> None:
    """See `plan`."""
    limit = _limit(budget)
    wanted = load_grid(grid, seeds=seeds_of(seeds), most_runs=max_runs, given=set_ or ())
    if against is not None:
        _compare(wanted, load_grid(against, most_runs=max_runs), grid, against, json)
        return
    gpus = visible_gpus()
    available = memory(gpus)
    runs, sharing = at_a_time.runs(len(gpus)), at_a_time.sharing(len(gpus))
    notes = [*wanted.notes, *prepare_data(wanted, large=False)]
    change = None
    if database_at(db).exists():
        with open_database(db, write=False) as database, database.read():
            wanted = with_winners(database, wanted)
            change = change_of(database, wanted, grid, db, replaces=replace)
            found = forecast_plan(database, wanted)
            of_searches = list(search_lines(wanted, database, runs))
    else:
        found = forecast_plan(None, wanted)
        of_searches = list(search_lines(wanted, None, runs))
    if probe:
        found = _probed(wanted, found, notes)
    free = free_bytes(database_at(db).location)
    if json:
        whole = plan_view.to_json(wanted, found, change, runs, sharing, available, free)
        out_json(whole | {"budget": limit and plan_view.budget_to_json(found.within(limit, runs))})
    else:
        out_lines(plan_view.lines(found, every=every))
        notes += [
            *of_searches,
            *impossible_evaluations(wanted),
            *plan_view.costs(found, runs, sharing, available, free),
        ]
        if open_ := sum(each.status is RunStatus.OPEN for each in found.runs):
            notes.append(f"{open_} runs at most come beside what is said of time and disk, as looks show")
        if change and (gone := leaving(change, wanted, db)):
            notes.append(gone)
        if limit and (within := what_is_left_out(limit, found.within(limit, runs), wanted)):
            notes.append(within)
        for note in notes:
            say(f"note: {note}")
    if not json:
        options = grid_options(seeds, set_)
        options += f" --workers {at_a_time.workers}" if at_a_time.workers else ""
        options += f" --per-gpu {at_a_time.per_gpu}" if at_a_time.per_gpu else ""
        options += f" --max-runs {max_runs}" if max_runs != MOST_RUNS else ""
        options += " --replace" if replace else ""
        options += f" --budget {limit.text}" if limit else ""
        say(f"{_counts(wanted, found)}; next: {kdx_command('sweep', grid, options=options + in_database(db))}")


def _limit(budget: str | None) -> Budget | None:
    if budget is None:
        return None

    return budget_from_now(budget)


def _counts(wanted: Plan, found: PlanForecast) -> str:
    actions = Counter(each.decision.action.value for each in found.runs)
    stale = sum(each.status is RunStatus.STALE for each in found.runs)
    of_skipped = f" ({stale} of them stale)" if stale else ""
    words = [f"{count} to {action}{of_skipped if action == 'skip' else ''}" for action, count in actions.items()]
    seeds = wanted.seed_rule or count_of(len(wanted.seeds), "seed")
    cells = len({cell.id for cell in wanted.trained})
    searched = len(wanted.cells) - len(wanted.trained)
    if not cells:
        return f"{count_of(searched, 'cell')} to search"
    text = f"{count_of(len(found.runs), 'run')} of {count_of(cells, 'cell')} × {seeds}: {', '.join(words)}"
    if searched:
        text += f"; {count_of(searched, 'more cell')} to search"
    to_make = sum(len(each.decision.missing) for each in found.runs if each.decision.action.value != "skip")
    return f"{text}; {count_of(to_make, 'evaluation')} to make" if to_make else text


def _probed(wanted: Plan, found: PlanForecast, notes: list[str]) -> PlanForecast:
    """With what a few steps of each cell cost of which nobody knows."""
    cells = found.unknown
    if not cells:
        return found
    announce(wanted)
    rehearse(wanted)
    measured = {}
    for number, cell in enumerate(cells, 1):
        try:
            measured[cell.id] = probe(cell)
        except KdxError as error:
            notes.append(f"{cell_name(cell)} could not be measured: {error.problem}")
        say(f"measured {number} of {len(cells)} cells")
    return found.with_forecasts(measured)


def _compare(wanted: Plan, other: Plan, grid: str, against: str, json: bool) -> None:
    """Shows how one grid differs from another."""
    found = difference(Contents.of(other), Contents.of(wanted))
    if json:
        out_json(plan_view.difference_to_json(found, wanted, other))
        return
    out_lines(plan_view.difference_lines(found, wanted, other))
    same = not (found.gone or found.new or found.seeds_gone or found.seeds_new)
    kept = len(found.shared) * len(set(wanted.seeds) & set(other.seeds))
    new = len({cell.id for cell in wanted.cells}) * len(wanted.seeds) - kept
    summary = "the same cells and seeds" if same else f"{new} runs more, {found.runs_gone} fewer, {kept} in both"
    say(f"{shell_word(grid)} against {shell_word(against)}: {summary}")
