"""`kdx evaluate`: read trained runs again, as their grid's `evaluations:` ask."""

from collections import Counter
from dataclasses import replace
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import say
from kdx.cli.custom_code import announce
from kdx.cli.options import DATABASE, Components, Db, Files, at_a_time_options, with_options
from kdx.cli.running import run_plan
from kdx.cli.sweep_argument import load_named, plan_in_file
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.run_options import RunOptions
from kdx.store import evaluations
from kdx.store.database import open_database
from kdx.store.plan_from_records import plan_of
from kdx.store.records import SweepRecord
from kdx.sweep.at_a_time import AtATime
from kdx.sweep.stale import changed_evaluations


@with_options(at_a_time=at_a_time_options)
def evaluate(
    sweep: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.sweeps_and_grids,
            metavar="SWEEP|GRID.yaml",
            help="A sweep, or its grid file; the last one if not said.",
        ),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    at_a_time: AtATime = AtATime(),
    components: Components = None,
    failed: Annotated[bool, typer.Option("--failed", help="Try evaluations that failed again, too.")] = False,
) -> None:
    """Evaluate completed runs again, from the weights they kept.

    Nothing is trained. The evaluations are those under `evaluations:`
    of the grid: of its file where one is named, whose evaluations the
    sweep asks for from then on.

    Example: kdx evaluate quickstart
    """
    wanted = plan_in_file(sweep, "evaluate")
    with open_database(db, write=True) as database:
        record = load_named(database, sweep, wanted, db)
        plan = plan_of(record, components)
        if wanted is not None:
            # With the places in the file, and of the seeds that the sweep has.
            plan = replace(plan, evaluations=wanted.evaluations)
        if not plan.evaluations:
            raise KdxError(
                f"sweep `{plan.name}` asks for no evaluations",
                place=sweep if wanted else db,
                hint="write evaluations: {longer: {length: [128, 256]}} or the like into its grid,"
                " then name the file: kdx evaluate GRID.yaml",
            )
        _say_stale(plan, record)
        announce(plan)
        prepare_data(plan)
        if wanted is not None:
            evaluations.ask_for(database, record.id, plan.grid["evaluations"])
        if failed:
            evaluations.forget_failed(database, [each.id for each in record.runs])
        raise typer.Exit(run_plan(plan, database, db, at_a_time, RunOptions(), trains=False, components=components))


def _say_stale(plan: Plan, sweep: SweepRecord) -> None:
    """Which of the evaluations that are there were made with other code; they stay as they are."""
    specs = {cell.id: cell.spec for cell in plan.cells}
    runs = [run for run in sweep.runs if run.cell_id in specs and run.invalidated is None]
    found: Counter[tuple[str, ...]] = Counter()
    for run in runs:
        asked = [each.id for each in plan.evaluations_of(run.cell_id)]
        found.update(changed_evaluations(specs[run.cell_id], asked, sweep.evaluations.get(run.id, {})).values())
    for modules, count in found.items():
        there = f"of {count_of(count, 'evaluation')} that {'is' if count == 1 else 'are'} there"
        hint = "kdx retry makes them anew with their runs"
        say(f"note: {there}, the code has changed since: {', '.join(modules)}; {hint}")
