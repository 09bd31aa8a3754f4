"""`kdx sweep`: trains the runs of a grid."""

from dataclasses import replace
from typing import Annotated

import typer

from kdx.cli.beside import BesideRuns
from kdx.cli.console import say, waits_for
from kdx.cli.context import InDatabase
from kdx.cli.options import GridFile, Hardware, Limit, MaxRuns, Running, Set, Slurm, set_options
from kdx.cli.planned import announce, change_of, removed_runs
from kdx.cli.running import Runner
from kdx.cli.wording import cell_name
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid import MOST_RUNS
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.shell import kdx_command
from kdx.store.database import Database
from kdx.store.recording import register
from kdx.sweep.decide import Action, decisions_in
from kdx.sweep.rehearsal import rehearse
from kdx.tune.search import with_winners


def sweep(
    grid: GridFile,
    context: InDatabase,
    at_a_time: Hardware,
    budget: Limit,
    options: Running,
    slurm: Slurm,
    beside: BesideRuns,
    set_: Set = None,
    max_runs: MaxRuns = MOST_RUNS,
    search_only: Annotated[
        bool, typer.Option("--search-only", help="Search what the grid tunes, and train no winner.")
    ] = False,
    longer: Annotated[
        bool, typer.Option("--longer", help="Only continue finished runs of fewer steps; refuse to start any anew.")
    ] = False,
) -> None:
    """Train the runs of a grid that the database lacks.

    Ctrl-C stops at the next safe point, a second Ctrl-C immediately; `kdx resume` continues.

    Example: kdx sweep quickstart --workers 2
    """
    if search_only and slurm is not None:
        raise KdxError("--search-only and --slurm exclude each other", hint="jobs train the winners as well")
    further = set_options(set_)
    plan = load_grid(grid, most_runs=max_runs, given=set_ or ())
    plan = replace(plan, command=kdx_command("sweep", grid, options=further))
    if search_only and not plan.searched:
        raise KdxError("the grid has no `tune:`", place=grid, hint="kdx explain tune")
    announce(plan)
    if plan.components:
        waits_for("trying custom components")
        rehearse(plan)
    waits_for("preparing data")
    # This comes first, so that a missing or unfit corpus is found before anything starts.
    for note in (*plan.notes, *prepare_data(plan)):
        say(f"note: {note}")
    with context.write(create=True) as database:
        planned = with_winners(database, plan)
        change = change_of(database, planned, grid, context)
        if message := removed_runs(change, plan, context):
            say(f"note: {message}")
        if longer:
            refuse_anew(database, planned)
        register(database, planned)
        whole = context.command("sweep", grid, options=further)
        alone = context.command("sweep", grid, options=f" --search-only{further}")
        only = alone if search_only else None
        code = Runner(database, context, at_a_time, options, slurm, budget).do(plan, search_only=only)
        if search_only and not code:
            say(f"next: {whole}, or: {context.command('export', plan.name, options=' --tuned tuned.yaml')}")
        raise typer.Exit(code)


def refuse_anew(database: Database, plan: Plan) -> None:
    """Raise KdxError for the first run of a plan that would start at step 0."""
    if any(cell.search and not cell.won for cell in plan.cells):
        raise KdxError("a search starts its trials at step 0", place=plan.name, hint="leave --longer out")
    for decision in decisions_in(database, plan):
        if decision.action is Action.START and not decision.first_step:
            raise KdxError(
                f"it would start at step 0: {decision.reason}",
                place=f"{cell_name(decision.run.cell)}, seed {decision.run.seed}",
                allowed="a completed run of the same cell with fewer steps, trained with --keep-state",
                hint="without --longer it starts at step 0",
            )
