"""`kdx status`: the progress of sweeps, who works at them, and how long they will take."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out_json, out_lines, say, table
from kdx.cli.context import Answering, Context
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import sweep_argument
from kdx.cli.slurm_jobs import Submitted, submitted, summary_lines
from kdx.cli.status_of_runs import (
    Worker,
    not_needed_in,
    note_lines,
    search_record,
    show_runs,
    states_in_words,
    trials_in_words,
    worker_of,
)
from kdx.cli.suggest import computing_options
from kdx.store.database import Database
from kdx.store.reading import searches_of_sweeps, sweeps
from kdx.store.records import FINAL, OVER, RunState, SearchRecord, SweepSummary
from kdx.store.remarks import NoteRecord, remarks
from kdx.store.status import CellTime, WorkRecord, times, work
from kdx.sweep.blocked import Blocked, blocked_in
from kdx.sweep.forecast import in_words, seconds_left


def status(
    context: Answering,
    sweep: Annotated[
        str | None, sweep_argument("A sweep, or its grid file, to show run by run; default: all sweeps.")
    ] = None,
    conditions: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.choices,
            metavar="KEY=VALUE",
            help="Only runs with this, such as state=failed, kernel=rbf, seed=0 or tag=odd.",
        ),
    ] = None,
) -> None:
    """Show the progress of sweeps, their workers and a forecast.

    Example: kdx status

    Example: kdx status quickstart state=failed
    """
    with context.read() as database:
        if sweep is not None:
            show_runs(database, known_sweep(database, sweep, context).name, conditions or [], context)
            return
        known = statuses(database)
        if context.json:
            out_json([status.plain for status in known])
        elif known:
            out_lines(_lines(known, database, context))
        else:
            say("no sweep is recorded here yet; kdx sweep GRID records one")


@dataclass(frozen=True)
class SweepStatus:
    """The progress of a sweep."""

    summary: SweepSummary
    has_rule: bool
    """Whether a rule decides how many seeds are needed, so that pending runs are the most."""
    searches: Sequence[SearchRecord]
    slurm: Sequence[Submitted]
    working: Sequence[Worker]
    """Whoever claimed a run; some may be gone."""
    seconds_left: float | None
    tags: Sequence[str]
    notes: Sequence[NoteRecord]
    blocked: Blocked

    @property
    def done(self) -> int:
        """Runs with a final state."""
        return sum(self.summary.counts.get(state, 0) for state in FINAL)

    @property
    def searching(self) -> bool:
        return any(search.left for search in self.searches)

    @property
    def plain(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "sweep": self.summary.name,
            "runs": self.summary.counts,
            "done": self.done,
            "has_rule": self.has_rule,
            "searches": [search_record(search) for search in self.searches],
            "slurm": [each.plain for each in self.slurm],
            "working": self.working,
            "seconds_left": self.seconds_left,
            "planned": self.summary.updated,
            "tags": self.tags,
            "notes": self.notes,
            **self.blocked.as_json(),
        }


def statuses(database: Database) -> list[SweepStatus]:
    """Return the progress of every sweep, the most recent first."""
    summaries = sweeps(database)
    not_needed = not_needed_in(database, [each.name for each in summaries if set(each.counts) - OVER])
    summaries = tuple(not_needed[each.name].without(each) if each.name in not_needed else each for each in summaries)
    unfinished = [each.id for each in summaries if set(each.counts) - OVER]
    by_id = {each.id: not_needed[each.name] for each in summaries if each.name in not_needed}
    cells: dict[int, list[CellTime]] = defaultdict(list)
    claims: dict[int, list[WorkRecord]] = defaultdict(list)
    for time in times(database, unfinished) if unfinished else ():
        cells[time.sweep_id].append(by_id[time.sweep_id].shortened(time) if time.sweep_id in by_id else time)
    for claim in work(database):
        claims[claim.sweep_id].append(claim)
    with database.read() as connection:
        searches = searches_of_sweeps(connection)
    # A sweep that is still searched may have no run of its own yet.
    searching = {key for key, each in searches.items() if any(search.left for search in each)}
    blocked = blocked_in(database, [each.id for each in summaries if each.id in searching or set(each.counts) - FINAL])
    jobs = submitted(database)
    written = remarks(database)
    progress = []
    for each in summaries:
        workers = list(map(worker_of, claims[each.id]))
        alive = [claim for claim, worker in zip(claims[each.id], workers, strict=True) if worker.alive]
        left = seconds_left(cells[each.id], alive) if each.id in unfinished else 0.0
        if each.id in searching:
            left = _seconds_of_trials(searches[each.id], len(alive))
        progress.append(
            SweepStatus(
                summary=each,
                has_rule=each.name in not_needed,
                searches=searches.get(each.id, ()),
                slurm=jobs.get(each.id, []),
                working=workers,
                seconds_left=left,
                tags=written.tags_of_sweeps.get(each.id, ()),
                notes=written.of_sweeps.get(each.id, ()),
                blocked=blocked.get(each.id, Blocked({}, {})),
            )
        )
    return progress


def _seconds_of_trials(searches: Sequence[SearchRecord], workers: int) -> float | None:
    """Return the seconds until all trials have ended, if each run takes as long as those that completed on average.

    None if none has completed.
    """
    runs = [run for search in searches for trial in search.trials for run in trial.runs]
    took = [run.seconds for run in runs if run.state is RunState.COMPLETED and run.seconds is not None]
    left = sum(search.left * search.seeds for search in searches)
    return fmean(took) * left / max(1, workers) if took else None


def _lines(statuses: Sequence[SweepStatus], database: Database, context: Context) -> Iterator[str]:
    rows = list(map(overview, statuses))
    yield from table(("sweep", "done", "states", "time left", "tags"), rows, optional=("tags",))
    claims = [(status.summary.name, *worker.row) for status in statuses for worker in status.working]
    yield from table(("sweep", "run", "step", "for", "worker"), claims, apart=True)
    paused = [status for status in statuses if status.blocked.paused or status.blocked.searches]
    if paused:
        yield ""
    for status in paused:
        name = status.summary.name
        yield from status.blocked.lines(name, computing_options(context, database, name))
    jobs = [row for status in statuses for row in summary_lines(status.summary.name, status.slurm)]
    yield from table(("sweep", "job array", "jobs", "in Slurm"), jobs, apart=True)
    yield from note_lines([(status.summary.name, status.notes) for status in statuses])


def overview(status: SweepStatus) -> tuple[str, ...]:
    """Return the name of a sweep, how much is done, its states, the time left, and its tags, for a table."""
    done = f"{status.done:,} of {sum(status.summary.counts.values()):,}"
    return status.summary.name, done, states(status), time_left(status), " ".join(status.tags)


def states(status: SweepStatus) -> str:
    """Return how many runs are in each state, in words."""
    counts = {state.value: count for state, count in status.summary.counts.items()}
    words = states_in_words(counts, has_rule=status.has_rule)
    if status.searching:
        return f"search: {trials_in_words(status.searches)}; then {words if counts else 'the winners'}"
    return words


def time_left(status: SweepStatus) -> str:
    """Return how long a sweep will take, in words; empty for one that is over."""
    if status.seconds_left is None:
        return "time left unknown: no run is completed"
    if not status.searching and not set(status.summary.counts) - OVER:
        return ""
    of_search = " for the search" if status.searching else ""
    nobody = "" if any(worker.alive for worker in status.working) else " once somebody works at it"
    return f"about {in_words(status.seconds_left)}{of_search}{nobody}"
