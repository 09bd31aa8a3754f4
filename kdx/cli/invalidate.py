"""`kdx invalidate`: takes runs out of tables."""

from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out_json, say
from kdx.cli.named_runs import is_number, runs_of
from kdx.cli.options import DATABASE, Db, Files, Json, in_database
from kdx.errors import KdxError
from kdx.store import remarks
from kdx.store.database import open_database
from kdx.store.records import FINAL
from kdx.store.schema import LINE


def invalidate(
    runs: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completion.runs,
            metavar="RUN…",
            help="Numbers of runs, as kdx status and kdx trace show them.",
        ),
    ],
    db: Db = DATABASE,
    files_in: Files = None,
    why: Annotated[str | None, typer.Option("--why", metavar="TEXT", help="The reason, in one line; needed.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Put the runs back into tables.")] = False,
    json: Json = False,
) -> None:
    """Exclude finished runs from reports.

    The database keeps them. An older generation of the same cell and
    seed takes the place of such a run; without one the seed is missing,
    and tables say so with the reason. A sweep does not train it again; kdx retry does.

    Example: kdx invalidate 7 --why "its corpus was cut"

    Example: kdx invalidate 7 --undo
    """
    for word in runs:
        if not is_number(word):
            hint = "kdx status SWEEP lists the runs of a sweep"
            raise KdxError(f"`{word}` is no run", allowed="the number of a run, such as 7", hint=hint)
    reason = " ".join((why or "").split())
    if undo and why is not None:
        raise KdxError("--why and --undo exclude each other", hint="a note on why it is back: kdx note RUN")
    if not undo and not reason:
        raise KdxError("there is no reason", hint='write one: --why "its corpus was cut"')
    if len(reason) > LINE:
        raise KdxError(f"a reason of {len(reason):,} characters", allowed=f"at most {LINE:,}")
    where = in_database(db)
    with open_database(db, write=True) as database:
        found = runs_of(database, runs, db)
        for run in found:
            if not undo and run.state not in FINAL:
                hint = f"kdx cancel {run.id}{where} stops it" if run.state != "failed" else "tables show no score of it"
                raise KdxError(f"run {run.id} is {run.state}", place=db, allowed="a finished run", hint=hint)
            if not undo and run.invalidated is not None:
                hint = f"kdx invalidate {run.id} --undo{where} puts it back"
                raise KdxError(f"run {run.id} is out of tables already: {run.invalidated}", place=db, hint=hint)
            if undo and run.invalidated is None:
                raise KdxError(f"run {run.id} is not out of tables", place=db)
        ids = [run.id for run in found]
        if undo:
            remarks.withdraw(database, ids)
        else:
            remarks.invalidate(database, ids, reason)
    if json:
        out_json({"runs": ids, "invalidated": None if undo else reason})
    named = f"run{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"
    if undo:
        say(f"{named} may stand in tables again; next: kdx report{where}")
    else:
        again = " ".join(map(str, ids))
        say(f"{named} out of tables; put back with --undo, train again with: kdx retry {again}{where}")
