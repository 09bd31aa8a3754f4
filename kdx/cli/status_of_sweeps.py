"""The progress of every sweep, who works at it, and how long it will take."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from kdx.cli.console import out_json, out_lines, say
from kdx.cli.context import Context
from kdx.cli.slurm_jobs import Submitted, submitted, summary_lines
from kdx.cli.spared import spared_of
from kdx.cli.status_words import (
    Search,
    Worker,
    note_lines,
    search_of,
    trials_in_words,
    without_blanks,
    worker_of,
)
from kdx.cli.suggest import computing_options
from kdx.report.writers.rows import to_text
from kdx.store.database import Database
from kdx.store.reading import searches_of_sweeps, sweeps
from kdx.store.records import FINAL, OVER, RunState, SearchRecord
from kdx.store.remarks import NoteRecord, remarks
from kdx.store.status import times, work
from kdx.sweep.blocked import Blocked, blocked_in
from kdx.sweep.forecast import in_words, seconds_left


@dataclass(frozen=True)
class SweepStatus:
    """The progress of a sweep."""

    sweep: str
    runs: Mapping[str, int]
    """State → number of runs."""
    done: int
    """Runs with a final state."""
    has_rule: bool
    """Whether a rule decides how many seeds are needed, so that pending runs are the most."""
    searches: Sequence[Search]
    slurm: Sequence[Submitted]
    working: Sequence[Worker]
    """Whoever claimed a run; some may be gone."""
    seconds_left: float | None
    planned: float
    tags: Sequence[str]
    notes: Sequence[NoteRecord]
    blocked: Blocked

    @property
    def searching(self) -> bool:
        return any(search.left for search in self.searches)

    @property
    def alive(self) -> int:
        """Number of workers that may still work."""
        return sum(worker.alive for worker in self.working)

    @property
    def plain(self) -> dict[str, Any]:
        """The same for programs."""
        plain = {**vars(self), "slurm": [each.plain for each in self.slurm], **self.blocked.as_json()}
        del plain["blocked"]
        return plain


def show_sweeps(database: Database, context: Context) -> None:
    """Write the progress of every sweep."""
    statuses = _statuses(database)
    if context.json:
        out_json([status.plain for status in statuses])
    elif statuses:
        out_lines(_lines(statuses, database, context))
    else:
        say("no sweep is recorded here yet; kdx sweep GRID records one")


def _statuses(database: Database) -> list[SweepStatus]:
    summaries = sweeps(database)
    spared = spared_of(database, [each.name for each in summaries if set(each.counts) - OVER])
    summaries = tuple(spared[each.name].without(each) if each.name in spared else each for each in summaries)
    unfinished = [each.id for each in summaries if set(each.counts) - OVER]
    by_id = {each.id: spared[each.name] for each in summaries if each.name in spared}
    cells, working = defaultdict(list), defaultdict(list)
    for time in times(database, unfinished) if unfinished else ():
        cells[time.sweep_id].append(by_id[time.sweep_id].shortened(time) if time.sweep_id in by_id else time)
    for claim in work(database):
        working[claim.sweep_id].append(claim)
    with database.read() as connection:
        searches = searches_of_sweeps(connection)
    # A sweep that is still searched may have no run of its own yet.
    searching = {key for key, each in searches.items() if any(search.left for search in each)}
    blocked = blocked_in(database, [each.id for each in summaries if each.id in searching or set(each.counts) - FINAL])
    jobs = submitted(database)
    written = remarks(database)
    statuses = []
    for each in summaries:
        workers = [worker_of(claim) for claim in working[each.id]]
        alive = [claim for claim, worker in zip(working[each.id], workers, strict=True) if worker.alive]
        left = seconds_left(cells[each.id], alive) if each.id in unfinished else 0.0
        if each.id in searching:
            left = _seconds_of_trials(searches[each.id], len(alive))
        statuses.append(
            SweepStatus(
                sweep=each.name,
                runs={state.value: count for state, count in each.counts.items()},
                done=sum(each.counts.get(state, 0) for state in FINAL),
                has_rule=each.name in spared,
                searches=[search_of(record) for record in searches.get(each.id, ())],
                slurm=jobs.get(each.id, []),
                working=workers,
                seconds_left=left,
                planned=each.updated,
                tags=written.tags_of_sweeps.get(each.id, ()),
                notes=written.of_sweeps.get(each.id, ()),
                blocked=blocked.get(each.id, Blocked({}, {})),
            )
        )
    return statuses


def _seconds_of_trials(searches: Sequence[SearchRecord], workers: int) -> float | None:
    """Return the seconds until all trials have ended, if each run takes as long as those that completed on average.

    None if none has completed.
    """
    runs = [run for search in searches for trial in search.trials for run in trial.runs]
    took = [run.seconds for run in runs if run.state is RunState.COMPLETED and run.seconds is not None]
    left = sum(search.left * search.seeds for search in searches)
    return fmean(took) * left / max(1, workers) if took else None


def _lines(statuses: Sequence[SweepStatus], database: Database, context: Context) -> Iterator[str]:
    rows: list[tuple[Any, ...]] = [
        (
            status.sweep,
            f"{status.done:,} of {sum(status.runs.values()):,}",
            _states(status),
            _time_left(status),
            " ".join(status.tags),
        )
        for status in statuses
    ]
    yield from to_text(*without_blanks(("sweep", "done", "states", "time left", "tags"), rows, "tags"))
    claims = [
        (status.sweep, worker.run, worker.step, in_words(worker.seconds), worker.place)
        for status in statuses
        for worker in status.working
    ]
    if claims:
        yield ""
        yield from to_text(("sweep", "run", "step", "for", "worker"), claims)
    paused = [status for status in statuses if status.blocked.lines(status.sweep, "")]
    if paused:
        yield ""
    for status in paused:
        yield from status.blocked.lines(status.sweep, computing_options(context, database, status.sweep))
    if jobs := [row for status in statuses for row in summary_lines(status.sweep, status.slurm)]:
        yield ""
        yield from to_text(("sweep", "job array", "jobs", "in Slurm"), jobs)
    yield from note_lines([(status.sweep, status.notes) for status in statuses])


def states_in_words(counts: Mapping[str, int], *, has_rule: bool) -> str:
    """Return how many runs are in each state; if a rule decides how many are needed, pending ones are the most."""
    most = {"pending": "at most "} if has_rule else {}
    return ", ".join(f"{most.get(state, '')}{count:,} {state}" for state, count in counts.items()) or "no runs"


def _states(status: SweepStatus) -> str:
    states = states_in_words(status.runs, has_rule=status.has_rule)
    if status.searching:
        return f"search: {trials_in_words(status.searches)}; then {states if status.runs else 'the winners'}"
    return states


def _time_left(status: SweepStatus) -> str:
    if status.seconds_left is None:
        return "unknown: none is completed"
    if not status.searching and not set(status.runs) & {"pending", "interrupted", "running"}:
        return ""
    of_search = " for the search" if status.searching else ""
    return f"about {in_words(status.seconds_left)}{of_search}{'' if status.alive else ' once somebody works at it'}"
