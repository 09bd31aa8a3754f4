"""`kdx rm`: removes a sweep."""

import sys
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of, size
from kdx.cli.console import out_json, say
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import DATABASE, Db, Files, Json, in_database
from kdx.errors import KdxError
from kdx.run_files.files import RunFile, files_beside, listing_of, remove
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.shell import kdx_command
from kdx.store import sweeps
from kdx.store.database import open_database
from kdx.store.sweeps import Removal


def rm(
    sweep: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.sweeps_and_grids, metavar="SWEEP|GRID.yaml", help="A sweep, or its grid file."
        ),
    ],
    db: Db = DATABASE,
    files_in: Files = None,
    runs: Annotated[
        bool,
        typer.Option("--runs", help="Also the runs that no other sweep plans or has planned, with all that is theirs."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Remove a sweep and, on request, its runs.

    Results stay unless --runs is given. With it go numbers, attempts,
    texts, evaluations and files of its runs, in every generation, and its
    searches with their trials. It shows first how much that is, and asks.

    Example: kdx rm quickstart
    """
    where = in_database(db)
    with open_database(db, write=True) as database:
        found = known_sweep(database, sweep, db)
        sweep = found.name
        shown = sweeps.removal(database, found.id, results=runs)
        if shown.running:
            one = len(shown.running) == 1
            running = f"run{'' if one else 's'} {', '.join(map(str, shown.running[:10]))}"
            hint = f"{kdx_command('cancel', sweep, options=where)} stops what runs"
            problem = f"{running} of sweep `{sweep}` {'is' if one else 'are'} at work"
            raise KdxError(problem, place=db, hint=hint)
        if runs:
            refuse_stranger(database)
        files = files_beside(database.location)
        listed = [file for run in shown.runs for file in listing_of(files, "-".join(map(str, run[1:])))]
        say(_what_goes(sweep, shown, listed))
        if not yes:
            if not _somebody_is_there():
                again = kdx_command("rm", sweep, options=f"{' --runs' * runs} --yes{where}")
                raise KdxError("nothing was removed, since nobody can be asked", place=db, hint=f"say so: {again}")
            if not typer.confirm("Remove it?", err=True):
                say("nothing was removed")
                return
        try:
            sweeps.remove(database, shown, results=runs)
        except sweeps.Changed:
            hint = "look at it again: kdx status"
            raise KdxError(f"sweep `{sweep}` changed meanwhile; nothing was removed", place=db, hint=hint) from None
        # What a kill leaves of them is listed by kdx gc as files of runs that are not in the database.
        for file in listed:
            remove(files, file, leave_word=False)
    size = sum(file.size for file in listed)
    if json:
        out_json(
            {
                "sweep": sweep,
                "plans": shown.plans,
                "runs": list(shown.run_ids),
                "kept": shown.kept,
                "seconds": shown.seconds,
                "files": len(listed),
                "bytes": size,
            }
        )
    kept = f"; {shown.kept:,} of its runs stay in the database" if shown.kept else ""
    say(f"removed sweep `{sweep}`{kept}")


def _somebody_is_there() -> bool:
    return sys.stdin.isatty()


def _what_goes(sweep: str, shown: Removal, listed: list[RunFile]) -> str:
    plans = f"{shown.plans} plan{'' if shown.plans == 1 else 's'}"
    started = len(shown.runs) - shown.never_started
    goes = [f"sweep `{sweep}` with {plans}"]
    if shown.never_started:
        goes.append(f"{shown.never_started:,} runs that never started")
    if started:
        hours = shown.seconds / 3600
        took = f"{hours:.1f} hours" if hours >= 0.1 else count_of(round(shown.seconds), "second")
        goes.append(f"{started:,} run{'' if started == 1 else 's'} with {took} of computing")
        goes.append(f"{len(listed):,} files, {size(sum(file.size for file in listed))}")
    stay = (
        f"; {shown.kept:,} run{'' if shown.kept == 1 else 's'} stay{'s' if shown.kept == 1 else ''}"
        if shown.kept
        else ""
    )
    return f"to be removed: {', '.join(goes)}{stay}"
