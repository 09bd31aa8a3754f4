"""`kdx sweep`: runs a grid."""

from dataclasses import replace as replaced
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import say
from kdx.cli.custom_code import announce
from kdx.cli.options import (
    DATABASE,
    MOST_RUNS,
    Db,
    Files,
    MaxRuns,
    Replace,
    Seeds,
    Set,
    WithinBudget,
    at_a_time_options,
    grid_options,
    run_options,
    seeds_of,
    with_options,
)
from kdx.cli.plan import say_plan
from kdx.cli.planned import change_of, leaving
from kdx.cli.running import budget_from_now, search_and_run
from kdx.cli.slurm_options import slurm_options
from kdx.cli.submitting import refuse_budget, submit_workers
from kdx.data.plan_corpora import prepare_data
from kdx.grid.load import load_grid
from kdx.run_options import RunOptions
from kdx.shell import kdx_command
from kdx.slurm.job_options import JobOptions
from kdx.store.database import open_database
from kdx.store.recording import register
from kdx.sweep.at_a_time import AtATime
from kdx.sweep.rehearsal import rehearse
from kdx.tune.search import with_winners


@with_options(options=run_options, at_a_time=at_a_time_options, slurm=slurm_options)
def sweep(
    grid: Annotated[
        str, typer.Argument(autocompletion=completion.grids, help="A YAML file, or the name of a shipped grid.")
    ],
    db: Db = DATABASE,
    files_in: Files = None,
    at_a_time: AtATime = AtATime(),
    seeds: Seeds = None,
    set_: Set = None,
    max_runs: MaxRuns = MOST_RUNS,
    budget: WithinBudget = None,
    options: RunOptions = RunOptions(),
    slurm: JobOptions | None = None,
    replace: Replace = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="As `kdx plan`: say what would be done.")] = False,
) -> None:
    """Train the runs of a grid that the database lacks.

    Ctrl-C once stops at the next safe point, twice at once; `kdx resume` continues.

    Example: kdx sweep quickstart --workers 2

    Example: kdx sweep quickstart --budget 6h

    Example: kdx sweep quickstart --slurm --time 4:00:00 --gpus-per-node 1
    """
    if dry_run:
        say_plan(
            grid, db, seeds=seeds, set_=set_, at_a_time=at_a_time, max_runs=max_runs, replace=replace, budget=budget
        )
        return

    refuse_budget(slurm, budget)
    limit = budget_from_now(budget)
    typed = kdx_command("sweep", grid, options=grid_options(seeds, set_))
    wanted = load_grid(grid, seeds=seeds_of(seeds), most_runs=max_runs, given=set_ or ())
    wanted = replaced(wanted, command=typed)
    announce(wanted)
    rehearse(wanted)
    # This comes first, so that a missing or unfit corpus is found before anything starts.
    for note in (*wanted.notes, *prepare_data(wanted)):
        say(f"note: {note}")
    with open_database(db, write=True, create=True) as database:
        change = change_of(database, with_winners(database, wanted), grid, db, replaces=replace)
        if change and (message := leaving(change, wanted, db)):
            say(f"note: {message}")
        if not wanted.searched:
            register(database, wanted, wanted.grid)
        if slurm is not None:
            if wanted.searched:
                register(database, with_winners(database, wanted), wanted.grid)
            submit_workers(wanted, database, db, at_a_time, options, slurm)
            return
        raise typer.Exit(search_and_run(wanted, database, db, at_a_time, options, budget=limit)[1])
