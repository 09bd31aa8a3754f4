"""Searches what a plan tunes before its winners are run, and shows how far the searches are and what they found."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kdx.cli.console import say
from kdx.cli.context import Context
from kdx.cli.running import FAILED, run_plan
from kdx.cli.wording import choices_of
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.report.wording import rounded
from kdx.run_options import RunOptions
from kdx.store.database import Database
from kdx.store.recording import register
from kdx.sweep.budget import Budget
from kdx.sweep.gpus import AtATime
from kdx.tune.search import Searching


def search_and_run(
    plan: Plan,
    database: Database,
    context: Context,
    at_a_time: AtATime,
    options: RunOptions,
    *,
    budget: Budget | None = None,
    search_only: str | None = None,
    components: Path | None = None,
) -> int:
    """Search what a plan tunes, register it with the winners, run it, and return the exit code.

    A plan that tunes nothing is run; it was registered before.

    Args:
        search_only: the command that continues the search, where the winners are registered and not trained.
        components: as for `run_plan`.
    """
    if not plan.searched:
        return run_plan(plan, database, context, at_a_time, options, budget=budget, components=components)
    search = Searching(database, plan)
    search.look()
    # Winners of a search that is done stay planned; the others have no cell yet.
    register(database, search.with_winners(), plan.grid)
    code = 0
    if not search.done:
        code = run_plan(
            search.advance(),
            database,
            context,
            at_a_time,
            options,
            budget=budget,
            search=search,
            again=search_only,
            components=components,
        )
        search.look()
    # Of a search that is done too: the command that ended it may have been killed before this.
    copy_to_dashboard(search, plan, database)
    if code not in (0, FAILED):
        return code
    # What is paused of a search has no winner; those of the others are there.
    with_winners = search.with_winners()
    register(database, with_winners, plan.grid)
    for line in winner_lines(search, plan):
        say(line)
    lost = len(plan.cells) - len(with_winners.trained)
    if lost:
        say(f"{lost} cells have no completed trial, and are left out: see kdx status{context.options}")
    code = 0
    if with_winners.trained and search_only is None:
        code = run_plan(with_winners, database, context, at_a_time, options, budget=budget, components=components)
    return code or (FAILED if lost else 0)


def copy_to_dashboard(search: Searching, plan: Plan, database: Database) -> None:
    """Copy the trials that have ended to where optuna-dashboard finds them."""
    # Optuna, which only a search needs.
    from kdx.tune.dashboard import copy_searches

    try:
        copy_searches(database, plan, search)
    except KdxError as error:
        # Nothing of the search depends on the dashboard.
        say(f"note: optuna-dashboard shows no new trials: {error.problem}; {error.hint}")


def winner_lines(search: Searching, plan: Plan) -> Iterator[str]:
    """Return what each search found, in one line a cell."""
    for cell in plan.cells:
        if cell.search is None:
            continue
        choices = choices_of(cell.labels, cell.id[:8])
        trials = search.trials(cell.search.id)
        ended = ", ".join(f"{count} {state}" for state, count in Counter(trial.state for trial in trials).items())
        best = search.winner(cell.search.id)
        if best is None:
            yield f"{choices}: no winner of {len(trials)} trials ({ended})"
            continue
        settings = ", ".join(f"{name} {value}" for name, value in best.parameters.items())
        metric = cell.spec.selection[0]
        assert best.value is not None  # it completed
        score = f"{metric} {rounded(best.value, metric)}"
        yield f"{choices}: trial {best.number} of {len(trials)} ({ended}): {settings}; {score}"
