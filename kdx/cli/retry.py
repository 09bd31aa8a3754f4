"""`kdx retry`: repeats a run."""

from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.options import DATABASE, Db, Parts, Workers, with_run_options
from kdx.run_options import RunOptions


@with_run_options
def retry(
    run: Annotated[
        int,
        typer.Argument(
            autocompletion=completion.runs, metavar="RUN", help="Number of the run, as kdx trace and kdx query show it."
        ),
    ],
    db: Db = DATABASE,
    workers: Workers = None,
    parts: Parts = None,
    options: RunOptions = RunOptions(),
) -> None:
    """Do one run again, whether it failed or its weights were lost.

    A finished run gets a new generation: the same cell and seed,
    computed anew. Tables show its numbers once it has ended; the earlier
    generation stays in the database. A run that failed or was stopped
    goes on from its last checkpoint.

    Example: kdx retry 7
    """
    from dataclasses import replace

    from kdx.cli.own_code import announce
    from kdx.cli.running import run_plan
    from kdx.data.plan_corpora import prepare_data
    from kdx.errors import KdxError
    from kdx.store import reading, recording
    from kdx.store.database import open_database
    from kdx.store.plan_from_records import plan_of
    from kdx.store.records import FINAL

    with open_database(db, write=True) as database:
        record, _, _ = reading.load_one(database, run)
        sweep = reading.sweep_of(database, run)
        whole = plan_of(reading.load_sweep(database, sweep), parts) if sweep else None
        # The first of several choices with the same cell.
        cells = [cell for cell in whole.cells if cell.id == record.cell_id][:1] if whole else []
        if whole is None or not cells:
            raise KdxError(f"no sweep plans run {run} any more", place=db, hint="add its cell and seed to a grid again")
        plan = replace(whole, cells=tuple(cells), seeds=(record.seed,), tables=())
        announce(plan)
        prepare_data(plan)
        if record.state in FINAL:
            if not recording.repeat(database, [run]):
                hint = "kdx resume goes on with what is not finished"
                raise KdxError(f"run {run} has a newer generation already", place=db, hint=hint)
        else:
            recording.reset_failed(database, [run])
        raise typer.Exit(run_plan(plan, database, db, workers, options))
