"""`kdx rm`: removes a sweep."""

import sys
from typing import Annotated

import typer

from kdx.cli.console import say
from kdx.cli.context import InDatabase
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import sweep_argument
from kdx.cli.slurm_jobs import submitted
from kdx.cli.wording import count_of, numbers_of, size
from kdx.errors import KdxError
from kdx.run_files.files import files_beside, listing_of, remove
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.store import sweeps
from kdx.store.reading import searching


def rm(
    sweep: Annotated[str, sweep_argument("A sweep, or its grid file.")],
    context: InDatabase,
    runs: Annotated[
        bool, typer.Option("--runs", help="Delete the runs too that no other sweep plans or has planned.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a sweep and, on request, its runs.

    Results stay unless --runs is given: it deletes numbers, attempts, texts, evaluations and files of its runs, in
    every generation, and its searches. It shows first how much that is, and asks.

    Example: kdx rm quickstart
    """
    with context.write() as database:
        known = known_sweep(database, sweep, context)
        name = known.name
        removal = sweeps.removal(database, known.id, results=runs)
        if removal.running:
            hint = f"{context.command('cancel', name)} stops what runs"
            if searching(database, [known.id]):
                hint = f"end the process that searches, which {context.command('status', name)} names"
            problem = f"sweep `{name}` is still computed: {numbers_of('run', removal.running)}"
            raise KdxError(problem, place=context.db, hint=hint)
        jobs = [job for each in submitted(database).get(name, ()) for job in each.queued or ()]
        if jobs:
            problem = f"sweep `{name}` has {count_of(len(jobs), 'job')} in Slurm's queue"
            raise KdxError(problem, place=context.db, hint=f"{context.command('cancel', name)} ends them")
        if removal.runs:
            refuse_stranger(database)
        files = files_beside(database.location)
        listed = [file for *_, folder in removal.runs for file in listing_of(files, folder)]
        total = sum(file.size for file in listed)
        stays = "stays" if removal.kept == 1 else "stay"
        kept = f"; {count_of(removal.kept, 'run')} {stays} in the database" if removal.kept else ""
        say(
            f"to be removed: sweep `{name}` with {count_of(removal.plans, 'plan')},"
            f" {count_of(len(removal.runs), 'run')} with {removal.seconds / 3600:.1f} hours of computing,"
            f" {count_of(len(listed), 'file')} ({size(total)}){kept}"
        )
        if not yes:
            if not _is_somebody_there():
                again = context.command("rm", name, options=f"{' --runs' * runs} --yes")
                raise KdxError("nothing was removed, since nobody can be asked", place=context.db, hint=again)
            if not typer.confirm("Remove it?", err=True):
                say("nothing was removed")
                return
        try:
            sweeps.remove(database, removal, results=runs)
        except sweeps.Changed:
            problem = f"sweep `{name}` changed meanwhile; nothing was removed"
            raise KdxError(problem, place=context.db, hint="look at it again: kdx status") from None
        # What a kill leaves of them is listed by kdx gc as files of runs that are not in the database.
        for file in listed:
            remove(files, file, leave_word=False)
    say(f"removed sweep `{name}`{kept}")


def _is_somebody_there() -> bool:
    return sys.stdin.isatty()
