"""`kdx cancel`: stops runs for good, until somebody takes them up again."""

from kdx.cli.console import out_json, say
from kdx.cli.context import Answering
from kdx.cli.named_runs import named_runs
from kdx.cli.options import ChosenRuns
from kdx.cli.slurm_jobs import submitted
from kdx.cli.suggest import computing_options, retry, retry_runs
from kdx.cli.wording import count_of, numbers_of
from kdx.errors import KdxError
from kdx.slurm import cluster
from kdx.slurm.cluster import Job
from kdx.store import claims
from kdx.store.find import sweep_named
from kdx.store.reading import planned_too, searching
from kdx.store.records import ENDED, RunState


def cancel(words: ChosenRuns, context: Answering) -> None:
    """Cancel unfinished runs, on any machine.

    The process of a run stops within moments and writes nothing more of it; the sweep continues with its other runs.
    Checkpoints stay: kdx retry resumes from the last one. The Slurm jobs of a whole sweep end too.

    Example: kdx cancel quickstart kernel=rbf
    """
    with context.write() as database:
        named = named_runs(database, words, context)
        ended = [run for run in named.runs if run.state in ENDED]
        if ended and named.sweep is None:
            states = ", ".join(f"run {run.id} is {run.state}" for run in ended)
            allowed = "runs that are pending, interrupted or running"
            raise KdxError(f"{states} already", place=context.db, allowed=allowed)
        cancelled = claims.cancel(database, [run.id for run in named.runs])
        others = planned_too(database, cancelled, named.sweep) if named.sweep else {}
        jobs: list[Job] = []
        unknown: list[str] = []
        of_trials: set[int] = set()
        search = ""
        if named.sweep:
            again = retry(RunState.CANCELLED, named.sweep, computing_options(context, database, named.sweep))
            if named.whole:
                sweep_id = sweep_named(database, named.sweep)
                of_sweep = submitted(database).get(named.sweep, ())
                if searching(database, [sweep_id]):
                    status = context.command("status", named.sweep)
                    search = f"its search continues until its process is ended, which {status} names"
                jobs = [job for each in of_sweep for job in each.queued or ()]
                unknown = sorted({str(each.submission.array) for each in of_sweep if each.queued is None})
        else:
            of_trials = {run.id for run in named.runs if run.search_id is not None} & cancelled.keys()
            again = retry_runs(context, database, [id for id in cancelled if id not in of_trials])
    refused: KdxError | None = None
    try:
        cluster.cancel(sorted({job.array for job in jobs}))
    except KdxError as error:
        refused = error
    removed = 0 if refused else len(jobs)
    if context.json:
        record = {"cancelled": [*cancelled], "running": [run for run, claimed in cancelled.items() if claimed]}
        left = [job.id for job in jobs] if refused else []
        out_json({**record, "planned_too": others, "jobs": removed, "jobs_left": left})
    if removed:
        say(f"took {count_of(removed, 'job')} out of Slurm's queue")
    if cancelled:
        running = sum(cancelled.values())
        at_work = f", {running} of them running" if running else ""
        retried = f"; take up again with: {again}" if cancelled.keys() - of_trials else ""
        say(f"cancelled {count_of(len(cancelled), 'run')}{at_work}{retried}")
        if of_trials:
            say(f"a search counts {numbers_of('run', sorted(of_trials))} as ended")
        if search:
            say(search)
    else:
        say(f"nothing was cancelled: {search or 'all of these runs have ended'}")
    if unknown:
        say(f"note: Slurm does not answer here; what is left of its jobs ends with: scancel {' '.join(unknown)}")
    for other, shared in others.items():
        say(f"{count_of(shared, 'run')} of sweep `{other}` too")
    if refused:
        # Their workers find nothing to do any more, but may wait in the queue for long.
        by_hand = f"scancel {' '.join(sorted({str(job.array) for job in jobs}))}"
        problem = f"{count_of(len(jobs), 'job')} still in Slurm's queue: {refused.problem}"
        raise KdxError(problem, hint=f"try it by hand: {by_hand}")
