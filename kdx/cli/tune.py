"""`kdx tune`: searches the parameters of a grid's cells, and trains no winner."""

import os
from dataclasses import replace as replaced
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import say
from kdx.cli.context import InDatabase
from kdx.cli.custom_code import announce
from kdx.cli.options import (
    MOST_RUNS,
    Hardware,
    MaxRuns,
    Replace,
    Running,
    Seeds,
    Set,
    WithinBudget,
    grid_options,
    seeds_of,
)
from kdx.cli.planned import change_of, leaving
from kdx.cli.running import budget_from_now, search_and_run
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.files import write_whole
from kdx.grid.load import load_grid
from kdx.grid.tuned_grid import tuned_grid
from kdx.shell import kdx_command
from kdx.sweep.rehearsal import rehearse
from kdx.tune.search import with_winners


def tune(
    grid: Annotated[str, typer.Argument(autocompletion=completion.grids, help="A YAML file with `tune:`.")],
    context: InDatabase,
    at_a_time: Hardware,
    options: Running,
    seeds: Seeds = None,
    set_: Set = None,
    max_runs: MaxRuns = MOST_RUNS,
    budget: WithinBudget = None,
    replace: Replace = False,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the winners as a grid that tunes nothing.")
    ] = None,
) -> None:
    """Search the parameters that a grid tunes, and train no winner. `kdx sweep` does both.

    Example: kdx tune grid.yaml --workers 2

    Example: kdx tune grid.yaml --write tuned.yaml
    """
    limit = budget_from_now(budget)
    typed = kdx_command("tune", grid, options=grid_options(seeds, set_))
    wanted = replaced(load_grid(grid, seeds=seeds_of(seeds), most_runs=max_runs, given=set_ or ()), command=typed)
    if not wanted.searched:
        raise KdxError("the grid has no `tune:`", place=grid, hint="kdx explain tune")
    if write is not None and write.exists():
        raise KdxError("the file is there already", place=str(write), hint="give --write another name")
    if write is not None and not os.access(write.absolute().parent, os.W_OK | os.X_OK):
        problem = f"no file can be written into the folder {write.absolute().parent}"
        raise KdxError(problem, place="--write", hint="name a folder that exists and that you may write to")
    announce(wanted)
    rehearse(wanted)
    for note in prepare_data(wanted):
        say(f"note: {note}")
    with context.write(create=True) as database:
        change = change_of(database, with_winners(database, wanted), grid, context, replaces=replace)
        if message := leaving(change, wanted, context):
            say(f"note: {message}")
        found, code = search_and_run(wanted, database, context, at_a_time, options, budget=limit, searches_only=True)
    if code:
        raise typer.Exit(code)
    if write is not None:
        write_whole(write, tuned_grid(found, write, given=set_ or (), seeds=seeds_of(seeds)))
        say(f"wrote {write}; next: {context.command('sweep', str(write))}")
    else:
        say(f"next: {context.command('sweep', grid, options=grid_options(seeds, set_))}")
