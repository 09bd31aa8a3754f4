"""`kdx invalidate`: excludes runs from reports."""

from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import say
from kdx.cli.context import InDatabase
from kdx.cli.named_runs import runs_of
from kdx.cli.wording import numbers_of
from kdx.errors import KdxError
from kdx.store import remarks
from kdx.store.records import FINAL
from kdx.store.schema import LINE


def invalidate(
    runs: Annotated[
        list[int], typer.Argument(autocompletion=completion.runs, metavar="RUN", help="Numbers of finished runs.")
    ],
    context: InDatabase,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, in one line; required.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Include the runs again.")] = False,
) -> None:
    """Exclude finished runs from reports.

    The database keeps them. An older generation of the same cell and seed takes the place of such a run; without one
    the seed is missing, and tables show the reason. A sweep does not train it again; kdx retry does.

    Example: kdx invalidate 7 --why "its corpus was cut"

    Example: kdx invalidate 7 --undo
    """
    reason = " ".join(why.split())
    if undo == bool(reason):
        raise KdxError("one of --why and --undo is needed", hint='such as --why "its corpus was cut"')
    if len(reason) > LINE:
        raise KdxError(f"a reason of {len(reason):,} characters", allowed=f"at most {LINE:,}")
    with context.write() as database:
        records = runs_of(database, map(str, runs), context)
        for run in records:
            if undo and run.invalidated is None:
                raise KdxError(f"run {run.id} is not excluded", place=context.db)
            if not undo and run.state not in FINAL:
                raise KdxError(f"run {run.id} is {run.state}", place=context.db, allowed="a finished run")
            if not undo and run.invalidated is not None:
                hint = context.command("invalidate", str(run.id), options=" --undo")
                raise KdxError(f"run {run.id} is excluded already: {run.invalidated}", place=context.db, hint=hint)
        ids = [run.id for run in records]
        if undo:
            remarks.withdraw(database, ids)
        else:
            remarks.invalidate(database, ids, reason)
    again = context.command("retry", *map(str, ids))
    excluded = f"excluded from reports; include with --undo, train again with: {again}"
    say(f"{numbers_of('run', ids)} {'included again' if undo else excluded}")
