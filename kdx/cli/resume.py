"""`kdx resume`: go on with what is unfinished."""

from typing import Annotated

import typer

from kdx.cli.console import say
from kdx.cli.options import DATABASE, Db, Workers


def resume(
    sweep: Annotated[str | None, typer.Argument(help="Name of a sweep; every unfinished one if not said.")] = None,
    db: Db = DATABASE,
    workers: Workers = None,
    failed: Annotated[bool, typer.Option("--failed", help="Try failed runs again, too.")] = False,
) -> None:
    """Go on with unfinished runs, each from its last checkpoint.

    Example: kdx resume quickstart
    """
    from kdx.cli.sweep import run
    from kdx.store import reader, writer
    from kdx.store.database import open_database
    from kdx.sweep.recorded import plan_of

    with open_database(db, write=True) as database:
        names = [sweep] if sweep else [summary.name for summary in reader.sweeps(database)]
        worst = 0
        begun = False
        for name in names:
            record = reader.load_sweep(database, name)
            if failed:
                writer.reset_failed(database, record.id)
                record = reader.load_sweep(database, name)
            states = {run.state.value for run in record.runs}
            if not states & {"pending", "running", "interrupted"}:
                continue
            begun = True
            code = run(plan_of(record), database, db, workers)
            if code >= 128:
                raise typer.Exit(code)
            worst = max(worst, code)
        if not begun:
            say("nothing is unfinished; next: kdx report")
    raise typer.Exit(worst)
