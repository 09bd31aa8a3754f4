"""`kdx status`: the progress of sweeps and of their runs, who works on them, and how long they will take."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import fmean
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import typer

from kdx.cli import completion
from kdx.cli.console import say, table
from kdx.cli.context import Answering, Context
from kdx.cli.named_runs import RunView, chosen, known_sweep, run_view, why_not_needed
from kdx.cli.options import sweep_argument
from kdx.cli.slurm_jobs import Submitted, job_lines, submitted, summary_lines
from kdx.cli.suggest import computing_options, resume, retry
from kdx.cli.wording import (
    NOT_NEEDED,
    PAUSED,
    count_of,
    counts_of,
    process_in_words,
    process_of,
    shown_score,
    test_metric,
    time_in_words,
)
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.find import SweepFound
from kdx.store.reading import grids, load_sweep, runs, searches_of_sweeps, sweeps
from kdx.store.records import ENDED, FINAL, RunState, SearchRecord, SweepSummary
from kdx.store.remarks import NoteRecord, Remarks, remarks
from kdx.store.status import CellTime, WorkRecord, labels_of, times, work
from kdx.sweep.blocked import Blocked, blocked_in
from kdx.sweep.forecast import in_words, seconds_left
from kdx.sweep.lease_holder import Liveness, liveness


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
        # Before the first statement and after the last: Slurm may take a minute to answer, a pager never ends, and on
        # SQLite a sweep cannot write meanwhile.
        jobs = submitted(database)
        if sweep is not None:
            output = _runs_of_sweep(database, known_sweep(database, sweep, context), conditions or [], jobs, context)
        else:
            known = statuses(database, jobs)
            last = [] if known else ["no sweep is recorded here yet; kdx sweep GRID records one"]
            output = Output(
                [status.plain for status in known], [*_lines(known, database, context)] if known else [], last
            )
    context.answer(output.record, lambda: output.lines)
    for text in () if context.json else output.last:
        say(text)


class Output(NamedTuple):
    """What the command writes, once nothing more is read."""

    record: Any
    """The same for programs."""
    lines: Sequence[str]
    last: Sequence[str]
    """Messages below them."""


@dataclass(frozen=True)
class Worker:
    """A process that claimed a run; docs/reference/json.md has the keys."""

    run: int
    step: int
    seconds: float
    lease_left: float | None
    device: str | None
    gpu: str | None
    machine: str | None
    process: int | None
    alive: bool
    """Whether it may still work: it was not found dead."""
    place: str
    """In words, such as `process 7 here`."""

    @property
    def row(self) -> tuple[int, int, str, str]:
        """Its run, step, time and place, for a table."""
        return self.run, self.step, in_words(self.seconds), self.place


def worker_of(work: WorkRecord) -> Worker:
    """Return who works on a run."""
    alive = work.owner is not None and liveness(work.owner) is not Liveness.GONE
    lapsed = work.lease_left is not None and work.lease_left < 0
    state = ", which is gone" if not alive else ", whose lease has lapsed" if lapsed else ""
    on = "" if work.gpu is None else f", on GPU {work.gpu} ({work.device})"
    machine, process = process_of(work.owner) or (None, None)
    place = process_in_words(work.owner)
    return Worker(
        run=work.run_id,
        step=work.step,
        seconds=work.running,
        lease_left=work.lease_left,
        device=work.device,
        gpu=work.gpu,
        machine=machine,
        process=process,
        alive=alive,
        place=f"{place}{state}{on}" if place else "a process of another kdx",
    )


def search_record(search: SearchRecord) -> dict[str, Any]:
    """Return how far a search is, for programs."""
    return {
        "choices": search.labels,
        "trials": search.wanted,
        "ended": search.ended,
        "runs_of_a_trial": search.seeds,
        "left": search.left,
    }


def trials_in_words(searches: Sequence[SearchRecord]) -> str:
    """Return how many trials of them all have ended."""
    trials = sum(search.wanted for search in searches)
    return f"{trials - sum(search.left for search in searches):,} of {trials:,} trials"


def states_in_words(counts: Mapping[str, int], *, has_rule: bool) -> str:
    """Return how many runs are in each state; if a rule decides how many are needed, pending ones are the most."""
    most = {"pending": "at most "} if has_rule else {}
    return ", ".join(f"{most.get(state, '')}{count:,} {state}" for state, count in counts.items()) or "no runs"


def note_lines(notes: Sequence[tuple[str, Sequence[NoteRecord]]]) -> Iterator[str]:
    """Return a table of notes, each with what it is on."""
    rows = [(what, time_in_words(note.made)[:-3], " ".join(note.text.split())) for what, each in notes for note in each]
    yield from table(("on", "written (UTC)", "note"), rows, apart=True)


@dataclass(frozen=True)
class NotNeeded:
    """Runs of one sweep that the rule of its seeds will not need; what is left to do is at most the others."""

    why: Mapping[int, str]
    """Run id → the reason, such as `decided after 5 seeds`."""
    by_cell: Counter[str]
    """Cell id → their number."""
    by_state: Counter[RunState]

    def without(self, summary: SweepSummary) -> SweepSummary:
        """Return the counts of the others."""
        counts = {state: count - self.by_state[state] for state, count in summary.counts.items()}
        return replace(summary, counts={state: count for state, count in counts.items() if count})

    def shortened(self, time: CellTime) -> CellTime:
        """Return the time that the others of a cell take."""
        return time._replace(left=time.left - self.by_cell[time.cell_id])


def not_needed_in(database: Database, names: Sequence[str]) -> dict[str, NotNeeded]:
    """Return sweep → its runs that will not be needed, for those of these sweeps that have a rule."""
    by_sweep = {}
    for name, grid in grids(database).items() if names else ():
        if name in names and "seed_rule" in grid:
            sweep = load_sweep(database, name)
            why = why_not_needed(sweep)
            runs = [run for run in sweep.runs if run.id in why]
            by_sweep[name] = NotNeeded(why, Counter(run.cell_id for run in runs), Counter(run.state for run in runs))
    return by_sweep


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


def statuses(database: Database, jobs: Mapping[str, Sequence[Submitted]] = MappingProxyType({})) -> list[SweepStatus]:
    """Return the progress of every sweep, the most recent first.

    Args:
        jobs: name of a sweep → what was submitted to Slurm for it.
    """
    summaries = sweeps(database)
    not_needed = not_needed_in(database, [each.name for each in summaries if set(each.counts) - ENDED])
    summaries = tuple(not_needed[each.name].without(each) if each.name in not_needed else each for each in summaries)
    unfinished = [each.id for each in summaries if set(each.counts) - ENDED]
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
                slurm=jobs.get(each.name, []),
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
    """Return how long a sweep will take, in words; empty for one that has ended."""
    if status.seconds_left is None:
        return "time left unknown: no run is completed"
    if not status.searching and not set(status.summary.counts) - ENDED:
        return ""
    of_search = " for the search" if status.searching else ""
    nobody = "" if any(worker.alive for worker in status.working) else " once a worker continues it"
    return f"about {in_words(status.seconds_left)}{of_search}{nobody}"


@dataclass(frozen=True)
class RunStatus:
    """The progress of a run."""

    view: RunView
    metric: str
    """The metric of its cell that selects, such as `valid/bleu`."""
    worker: Worker | None
    waits_for: str | None

    @property
    def score(self) -> Decimal | float | None:
        """Its score on the test split, unless something keeps it out of tables."""
        run = self.view.record
        return None if run.invalidated else shown_score(run.test_score, self.metric)

    @property
    def detail(self) -> str:
        """Who works on the run, what it waits for, or why it ended."""
        run = self.view.record
        if self.worker is not None:
            return f"{self.worker.place}, for {in_words(self.worker.seconds)}"
        if run.invalidated:
            return "; ".join(filter(None, (f"excluded from reports: {run.invalidated}", run.error)))
        if self.view.not_needed:
            return f"{NOT_NEEDED}: {self.view.not_needed}"
        return self.waits_for or run.error or ""

    @property
    def plain(self) -> dict[str, Any]:
        """The same for programs."""
        return {**self.view.plain, "worker": self.worker, "waits_for": self.waits_for}


def _runs_of_sweep(
    database: Database,
    sweep: SweepFound,
    conditions: Sequence[str],
    jobs_of_sweeps: Mapping[str, Sequence[Submitted]],
    context: Context,
) -> Output:
    """Return the progress of each run of a sweep that meets all `key=value`."""
    sweep_id, name = sweep.id, sweep.name
    written = remarks(database)
    blocked = blocked_in(database, [sweep_id])[sweep_id]
    not_needed = not_needed_in(database, [name]).get(name)
    claims = [claim for claim in work(database) if claim.sweep_id == sweep_id]
    working = {claim.run_id: worker_of(claim) for claim in claims if not claim.of_trial}
    views = chosen(_views(database, sweep_id, written, not_needed.why if not_needed else {}), conditions)
    metrics: dict[str, str] = dict(
        database.rows("SELECT cell_id, metric FROM cells WHERE sweep = :sweep", {"sweep": name})
    )
    statuses = [
        RunStatus(view, metrics[run.cell_id], working.get(run.id), blocked.waits_for.get(run.id))
        for view in views
        for run in [view.record]
    ]
    with database.read() as connection:
        searches = searches_of_sweeps(connection, [sweep_id]).get(sweep_id, ())
    trials = [worker_of(claim) for claim in claims if claim.of_trial]
    jobs = jobs_of_sweeps.get(name, ())
    tags, notes = written.tags_of_sweeps.get(sweep_id, ()), written.of_sweeps.get(sweep_id, ())
    record = {
        "sweep": name,
        "tags": tags,
        "notes": notes,
        **blocked.as_json(),
        "searches": [search_record(search) for search in searches],
        "trials": trials,
        "slurm": [each.plain for each in jobs],
        "runs": [status.plain for status in statuses],
    }
    options = computing_options(context, database, name)

    def lines() -> Iterator[str]:
        yield from _search_lines(searches, trials)
        if statuses or not searches:
            yield from _run_lines(statuses)
        if paused := blocked.lines(name, options):
            yield ""
            yield from paused
        yield from table(("job", "in Slurm", "node", "why"), job_lines(jobs), apart=True)
        of_runs = [(f"run {view.record.id}", view.notes) for view in views]
        yield from note_lines([(name, notes), *of_runs])
        if tags:
            yield ""
            yield f"tags: {sanitize(' '.join(tags))}"

    counts = _counts(views, blocked)
    states = states_in_words(counts, has_rule=not_needed is not None)
    searching = any(search.left for search in searches)
    abandoned = not any(worker.alive for worker in (*working.values(), *trials))
    of_trials = f"search: {trials_in_words(searches)}; " if searching else ""
    following = _next(counts, views, searching or (counts["running"] > 0 and abandoned), name, context, options)
    last = [f"{of_trials}{count_of(len(views), 'run')}: {states}{following}"]
    if any(each.queued is None for each in jobs):
        last.insert(0, "note: Slurm does not answer here, so the state of its jobs is unknown")
    return Output(record, [*lines()], last)


def _views(database: Database, sweep_id: int, written: Remarks, not_needed: Mapping[int, str]) -> list[RunView]:
    """Return the runs of a sweep by seed, then in the order of its cells."""
    labels = labels_of(database, sweep_id)
    order = {cell_id: place for place, cell_id in enumerate(labels)}
    records = sorted(runs(database, sweep_id), key=lambda each: (each.seed, order.get(each.cell_id, 0)))
    return [run_view(each, labels[each.cell_id], written, not_needed.get(each.id)) for each in records]


def _run_lines(statuses: Sequence[RunStatus]) -> Iterator[str]:
    axes = list(dict.fromkeys(axis for status in statuses for axis in status.view.choices))
    metrics = list(dict.fromkeys(status.metric for status in statuses))
    rows: list[tuple[Any, ...]] = []
    for status in statuses:
        run = status.view.record
        scores = (status.score if status.metric == metric else None for metric in metrics)
        took = "" if run.seconds is None else in_words(run.seconds)
        choices = (status.view.choices.get(axis, "–") for axis in axes)
        tags = " ".join(status.view.tags)
        step = run.progress_step or None
        rows.append((run.id, *choices, run.seed, run.state, step, took, *scores, tags, status.detail))
    heads = [test_metric(metric) for metric in metrics]
    head = ("run", *axes, "seed", "state", "step", "took", *heads, "tags", "")
    yield from table(head, rows, spare=("took",), optional=(*heads, "tags", ""))


def _search_lines(searches: Sequence[SearchRecord], trials: Sequence[Worker]) -> Iterator[str]:
    if not searches:
        return
    axes = list(dict.fromkeys(axis for search in searches for axis in search.labels))
    rows = []
    for search in searches:
        ended = {state.value: count for state, count in search.ended.items()}
        choices = (search.labels.get(axis, "–") for axis in axes)
        rows.append((*choices, f"{search.wanted - search.left:,} of {search.wanted:,}", counts_of(ended)))
    yield from table((*axes, "trials", "ended"), rows)
    rows_of_trials = [worker.row for worker in trials]
    yield from table(("run of a trial", "step", "for", "worker"), rows_of_trials, apart=True)
    yield ""


def _counts(views: Sequence[RunView], blocked: Blocked) -> Counter[str]:
    """Return the number of runs in each state, as the last line shows it."""
    counts: Counter[str] = Counter()
    for view in views:
        run = view.record
        is_paused = run.state is RunState.PENDING and run.cell_id in blocked.paused
        counts[NOT_NEEDED if view.not_needed else PAUSED if is_paused else run.state.value] += 1
    return counts


def _next(
    counts: Mapping[str, int], views: Sequence[RunView], more: bool, name: str, context: Context, options: str
) -> str:
    """Return the command that follows; before it, the one that shows why the last of the failed runs failed.

    Args:
        more: whether there is more to do than runs that are pending or interrupted.
    """
    if counts["pending"] or counts["interrupted"] or more:
        return f"; next: {resume(name, options)}"
    if failed := [view.record.id for view in views if view.record.state is RunState.FAILED]:
        logs = context.command("logs", str(failed[-1]))
        return f"; see why with: {logs}; next: {retry(RunState.FAILED, name, options)}"
    return f"; next: {retry(RunState.CANCELLED, name, options)}" if counts["cancelled"] else ""
