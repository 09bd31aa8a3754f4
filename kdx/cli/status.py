"""`kdx status`: the progress of sweeps."""

from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.context import Answering
from kdx.cli.named_runs import known_sweep
from kdx.cli.status_of_runs import show_runs
from kdx.cli.status_of_sweeps import show_sweeps


def status(
    context: Answering,
    sweep: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.sweeps_and_grids,
            metavar="[SWEEP|GRID.yaml]",
            help="A sweep, or its grid file, to show run by run; default: all sweeps.",
        ),
    ] = None,
    conditions: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.choices,
            metavar="[KEY=VALUE]…",
            help="Only runs with this, such as state=failed, kernel=rbf, seed=0 or tag=odd.",
        ),
    ] = None,
) -> None:
    """Show the progress of sweeps, their workers and a forecast.

    Example: kdx status

    Example: kdx status quickstart state=failed
    """
    with context.read() as database:
        if sweep is None:
            show_sweeps(database, context)
        else:
            show_runs(database, known_sweep(database, sweep, context).name, conditions or [], context)
