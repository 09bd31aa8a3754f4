"""`kdx evaluate`: evaluates trained runs again, as their grid's `evaluations:` ask."""

from collections import Counter
from dataclasses import replace
from typing import Annotated

import typer

from kdx.cli.console import say
from kdx.cli.context import InDatabase
from kdx.cli.named_runs import is_grid_file, load_named
from kdx.cli.options import Components, Hardware, Sweep
from kdx.cli.planned import announce
from kdx.cli.running import Runner
from kdx.cli.wording import count_of
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.run_options import RunOptions
from kdx.store import evaluations
from kdx.store.plan_from_records import plan_of
from kdx.store.records import SweepRecord
from kdx.sweep.plan_forecast import changed_evaluations


def evaluate(
    context: InDatabase,
    at_a_time: Hardware,
    sweep: Sweep = None,
    components: Components = None,
    failed: Annotated[bool, typer.Option("--failed", help="Also repeat failed evaluations.")] = False,
) -> None:
    """Evaluate completed runs again, from the weights they kept.

    Nothing is trained. Makes the evaluations under `evaluations:` of the grid. Given a grid file, the sweep takes over
    its evaluations and tables.

    Example: kdx evaluate quickstart
    """
    from_file = load_grid(sweep) if sweep and is_grid_file(sweep) else None
    with context.write() as database:
        record = load_named(database, sweep, context)
        plan = plan_of(record, components)
        if from_file is not None:
            # With the places in the file, and the seeds of the sweep.
            plan = replace(plan, evaluations=from_file.evaluations, tables=from_file.tables)
        if not plan.evaluations:
            raise KdxError(
                f"sweep `{plan.name}` asks for no evaluations",
                place=sweep if from_file else context.db,
                hint="write evaluations: {longer: {length: [128, 256]}} or the like into its grid,"
                " then name the file: kdx evaluate GRID.yaml",
            )
        _report_stale(plan, record)
        announce(plan)
        prepare_data(plan)
        if from_file is not None:
            evaluations.ask_for(database, record.id, plan)
        if failed:
            evaluations.forget_failed(database, [run.id for run in record.runs])
        runner = Runner(database, context, at_a_time, RunOptions(), components=components)
        raise typer.Exit(runner.run(plan, trains=False))


def _report_stale(plan: Plan, sweep: SweepRecord) -> None:
    """Print which of the existing evaluations were made with other code; they stay as they are."""
    specs = {cell.id: cell.spec for cell in plan.cells}
    runs = [run for run in sweep.runs if run.cell_id in specs and run.invalidated is None]
    stale: Counter[tuple[str, ...]] = Counter()
    for run in runs:
        planned = plan.evaluations_of(run.cell_id)
        stale.update(changed_evaluations(planned, sweep.evaluations.get(run.id, {})).values())
    for modules, count in stale.items():
        changed = f"the code of {count_of(count, 'evaluation')} has changed since: {', '.join(modules)}"
        say(f"note: {changed}; kdx retry makes them anew with their runs")
