"""`kdx cancel`: stops runs for good, until somebody takes them up again."""

from typing import TYPE_CHECKING, Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out_json, say
from kdx.cli.options import DATABASE, Db, Json, in_database, retry_cancelled

if TYPE_CHECKING:
    from kdx.store.database import Database


def cancel(
    words: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completion.sweeps_and_runs,
            metavar="RUN…|SWEEP [KEY=VALUE]…",
            help="Numbers of runs, as kdx status shows them, or a sweep; of these only those that have KEY=VALUE, such "
            "as kernel=rbf.",
        ),
    ],
    db: Db = DATABASE,
    json: Json = False,
) -> None:
    """Cancel runs that are not over, also those that another kdx works at.

    The process of a run stops within moments and writes nothing more of
    it; the sweep goes on with its other runs. Checkpoints stay: kdx retry
    goes on from the last one. Of a whole sweep the jobs in Slurm go too.

    Example: kdx cancel quickstart kernel=rbf
    """
    from kdx.cli.named_runs import named_runs
    from kdx.cli.opening import open_to_write
    from kdx.cli.wording import count_of
    from kdx.errors import KdxError
    from kdx.store import leases
    from kdx.store.find import sweep_named
    from kdx.store.reading import planned_too
    from kdx.store.records import OVER

    with open_to_write(db) as database:
        named = named_runs(database, words, db)
        over = [run for run in named.runs if run.state in OVER]
        if over and named.sweep is None:
            states = ", ".join(f"run {run.id} is {run.state}" for run in over)
            raise KdxError(f"{states} already", place=db, allowed="runs that are pending, interrupted or running")
        cancelled = leases.cancel(database, [run.id for run in named.runs])
        others = planned_too(database, cancelled, named.sweep) if named.sweep else {}
        whole = named.sweep is not None and len(words) == 1
        jobs = _end_jobs(database, sweep_named(database, named.sweep)) if named.sweep and whole else 0
    if json:
        at_work_ids = [run for run, claimed in cancelled.items() if claimed]
        out_json({"cancelled": [*cancelled], "running": at_work_ids, "planned_too": others, "jobs": jobs})
    if jobs:
        say(f"took {count_of(jobs, 'job')} out of Slurm's queue")
    if not cancelled:
        say("nothing was cancelled: every one of these runs is over")
        return
    running = sum(cancelled.values())
    at_work = f", {running} of them at work" if running else ""
    by_number = f"kdx retry {' '.join(map(str, cancelled))}{in_database(db)}"
    again = retry_cancelled(named.sweep, db) if named.sweep else by_number
    count = f"{len(cancelled):,} run{'' if len(cancelled) == 1 else 's'}"
    say(f"cancelled {count}{at_work}; take up again with: {again}")
    for other, shared in others.items():
        say(f"{shared:,} of them {'is' if shared == 1 else 'are'} also of sweep `{other}`")


def _end_jobs(database: "Database", sweep_id: int) -> int:
    """Takes a sweep's jobs out of Slurm's queue, and says how many those were."""
    from kdx.cli.slurm_jobs import submitted

    queued = [job for one in submitted(database).get(sweep_id, ()) for job in one.queued or ()]
    if queued:
        from kdx.slurm import cluster

        cluster.cancel(sorted({job.array for job in queued}))
    return len(queued)
