"""`kdx cancel`: stops runs for good, until somebody takes them up again."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import out_json, say
from kdx.cli.named_runs import named_runs
from kdx.cli.options import DATABASE, Db, Files, Json, in_database_with_components, retry_cancelled, retry_runs
from kdx.cli.slurm_jobs import submitted
from kdx.errors import KdxError
from kdx.slurm import cluster
from kdx.slurm.cluster import Job
from kdx.store import claims
from kdx.store.database import Database, open_database
from kdx.store.find import sweep_named
from kdx.store.reading import planned_too
from kdx.store.records import OVER


def cancel(
    words: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completion.sweeps_grids_and_runs,
            metavar="RUN…|SWEEP|GRID.yaml [KEY=VALUE]…",
            help="Numbers of runs, as kdx status shows them, or a sweep; of these only those that have KEY=VALUE, such "
            "as kernel=rbf.",
        ),
    ],
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Cancel runs that are not over, on any machine.

    The process of a run stops within moments and writes nothing more of
    it; the sweep continues with its other runs. Checkpoints stay: kdx retry
    resumes from the last one. The Slurm jobs of a whole sweep end too.

    Example: kdx cancel quickstart kernel=rbf
    """
    with open_database(db, write=True) as database:
        named = named_runs(database, words, db)
        over = [run for run in named.runs if run.state in OVER]
        if over and named.sweep is None:
            states = ", ".join(f"run {run.id} is {run.state}" for run in over)
            raise KdxError(f"{states} already", place=db, allowed="runs that are pending, interrupted or running")
        cancelled = claims.cancel(database, [run.id for run in named.runs])
        others = planned_too(database, cancelled, named.sweep) if named.sweep else {}
        if named.sweep:
            again = retry_cancelled(named.sweep, in_database_with_components(db, database, named.sweep))
        else:
            again = retry_runs(db, database, list(cancelled))
        whole = named.sweep is not None and len(words) == 1
        jobs = _jobs_of(database, sweep_named(database, named.sweep)) if named.sweep and whole else []
    refused = _end(jobs)
    ended = 0 if refused else len(jobs)
    if json:
        at_work_ids = [run for run, claimed in cancelled.items() if claimed]
        left = [job.id for job in jobs] if refused else []
        plain = {"cancelled": [*cancelled], "running": at_work_ids, "planned_too": others, "jobs": ended}
        out_json({**plain, "jobs_left": left})
    if ended:
        say(f"took {count_of(ended, 'job')} out of Slurm's queue")
    _say_cancelled(cancelled, others, again)
    if refused:
        # Their workers find nothing to do any more, but may wait in the queue for long.
        by_hand = f"scancel {' '.join(sorted({str(job.array) for job in jobs}))}"
        which = "the job is" if len(jobs) == 1 else f"the {len(jobs)} jobs are"
        raise KdxError(f"{which} still in Slurm's queue: {refused.problem}", hint=f"try it by hand: {by_hand}")


def _say_cancelled(cancelled: dict[int, bool], others: dict[str, int], again: str) -> None:
    if not cancelled:
        say("nothing was cancelled: every one of these runs is over")
        return
    running = sum(cancelled.values())
    at_work = f", {running} of them at work" if running else ""
    count = f"{len(cancelled):,} run{'' if len(cancelled) == 1 else 's'}"
    say(f"cancelled {count}{at_work}; take up again with: {again}")
    for other, shared in others.items():
        say(f"{shared:,} of them {'is' if shared == 1 else 'are'} also of sweep `{other}`")


def _jobs_of(database: Database, sweep_id: int) -> list[Job]:
    """A sweep's jobs that Slurm has in its queue, or at work."""
    return [job for one in submitted(database).get(sweep_id, ()) for job in one.queued or ()]


def _end(jobs: Sequence[Job]) -> KdxError | None:
    """Takes jobs out of Slurm's queue; why Slurm refuses that, where it does."""
    try:
        cluster.cancel(sorted({job.array for job in jobs}))
    except KdxError as error:
        return error
    return None
