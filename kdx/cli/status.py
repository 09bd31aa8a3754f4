"""`kdx status`: how far sweeps are."""

from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import DATABASE, Db, Files, Json
from kdx.cli.status_of_runs import show_runs
from kdx.cli.status_of_sweeps import show_sweeps
from kdx.store.database import open_database


def status(
    sweep: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.sweeps_and_grids,
            metavar="[SWEEP|GRID.yaml]",
            help="One sweep, run by run, by its name or its grid file; all sweeps if not said.",
        ),
    ] = None,
    chosen: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.choices,
            metavar="[KEY=VALUE]…",
            help="Only runs that have this, such as state=failed, kernel=rbf, seed=0 or tag=odd; an axis, or what "
            "--json has.",
        ),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Show the progress of sweeps, their workers and a forecast.

    Example: kdx status

    Example: kdx status quickstart state=failed
    """
    with open_database(db, write=False) as database, database.read():
        if sweep is None:
            show_sweeps(database, db, json)
        else:
            show_runs(database, known_sweep(database, sweep, db).name, chosen or [], db, json)
