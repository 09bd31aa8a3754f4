"""The runs of one sweep, one a line: their progress, who works at them, and what blocks them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kdx.cli.console import say
from kdx.cli.context import Context
from kdx.cli.run_view import RunView, chosen, run_view
from kdx.cli.slurm_jobs import Submitted, job_lines, submitted
from kdx.cli.spared import spared_of
from kdx.cli.status_of_sweeps import states_in_words
from kdx.cli.status_words import Search, Worker, note_lines, search_of, trials_in_words, without_blanks, worker_of
from kdx.cli.suggest import computing_options, resume, retry_cancelled, retry_failed
from kdx.cli.wording import NOT_NEEDED, PAUSED, count_of
from kdx.report.writers.rows import to_text
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.find import sweep_named
from kdx.store.reading import runs, searches_of
from kdx.store.remarks import Remarks, remarks
from kdx.store.status import WorkRecord, labels_of, work
from kdx.sweep.blocked import Blocked, blocked_in
from kdx.sweep.forecast import in_words


@dataclass(frozen=True, kw_only=True)
class RunStatus(RunView):
    """The progress of a run."""

    worker: Worker | None
    waits_for: str | None

    @property
    def detail(self) -> str:
        """Who works at the run, or why it ended, or its score."""
        if self.worker is not None:
            return f"{self.worker.place}, for {in_words(self.worker.seconds)}"
        if self.invalidated:
            return "; ".join(filter(None, (f"excluded from reports: {self.invalidated}", self.error)))
        if self.not_needed:
            return f"{NOT_NEEDED}: {self.not_needed}"
        score = "" if self.test_score is None else f"score {self.test_score:.4g}"
        return self.waits_for or self.error or score


def show_runs(database: Database, name: str, conditions: Sequence[str], context: Context) -> None:
    """Write the progress of each run of a sweep that meets all `key=value`."""
    sweep_id = sweep_named(database, name)
    written = remarks(database)
    blocked = blocked_in(database, [sweep_id])[sweep_id]
    spared = spared_of(database, [name]).get(name)
    claims = [claim for claim in work(database) if claim.sweep_id == sweep_id]
    statuses = _statuses(database, sweep_id, conditions, written, blocked, spared.why if spared else {}, claims)
    with database.read() as connection:
        searches = [search_of(record) for record in searches_of(connection, sweep_id)]
    trials = [worker_of(claim) for claim in claims if claim.of_trial]
    jobs = submitted(database).get(sweep_id, [])
    tags, notes = written.tags_of_sweeps.get(sweep_id, ()), written.of_sweeps.get(sweep_id, ())
    record = {
        "sweep": name,
        "tags": tags,
        "notes": notes,
        **blocked.as_json(),
        "searches": searches,
        "trials": trials,
        "slurm": [each.plain for each in jobs],
        "runs": statuses,
    }
    options = computing_options(context, database, name)

    def lines() -> Iterator[str]:
        yield from _search_lines(searches, trials)
        if statuses or not searches:
            yield from _run_lines(statuses)
        if paused := blocked.lines(name, options):
            yield ""
            yield from paused
        yield from _job_table(jobs)
        of_runs = [(f"run {run.run}", run.notes) for run in statuses]
        yield from note_lines([(name, notes), *of_runs])
        if tags:
            yield ""
            yield f"tags: {sanitize(' '.join(tags))}"

    context.answer(record, lines)
    if not context.json:
        if any(each.queued is None for each in jobs):
            say("note: Slurm does not answer here, so the state of its jobs is unknown")
        has_rule = spared is not None
        say(
            _closing(statuses, searches, blocked, has_rule) + _next(statuses, searches, blocked, name, context, options)
        )


def _statuses(
    database: Database,
    sweep_id: int,
    conditions: Sequence[str],
    written: Remarks,
    blocked: Blocked,
    not_needed: Mapping[int, str],
    claims: Sequence[WorkRecord],
) -> list[RunStatus]:
    labels = labels_of(database, sweep_id)
    order = {cell_id: place for place, cell_id in enumerate(labels)}
    records = sorted(runs(database, sweep_id), key=lambda each: (each.seed, order.get(each.cell_id, 0)))
    working = {claim.run_id: worker_of(claim) for claim in claims if not claim.of_trial}
    views = [
        replace(run_view(each, labels[each.cell_id], written), not_needed=not_needed.get(each.id)) for each in records
    ]
    return [
        RunStatus(**vars(view), worker=working.get(view.run), waits_for=blocked.waits_for.get(view.run))
        for view in chosen(views, conditions)
    ]


def _run_lines(statuses: Sequence[RunStatus]) -> Iterator[str]:
    axes = list(dict.fromkeys(axis for run in statuses for axis in run.choices))
    rows: list[tuple[Any, ...]] = [
        (
            run.run,
            *(run.choices.get(axis, "–") for axis in axes),
            run.seed,
            run.state,
            run.step or None,
            "" if run.seconds is None else in_words(run.seconds),
            " ".join(run.tags),
            run.detail,
        )
        for run in statuses
    ]
    yield from to_text(*without_blanks(("run", *axes, "seed", "state", "step", "took", "tags", ""), rows, "tags"))


def _search_lines(searches: Sequence[Search], trials: Sequence[Worker]) -> Iterator[str]:
    if not searches:
        return
    axes = list(dict.fromkeys(axis for search in searches for axis in search.choices))
    rows = [
        (
            *(search.choices.get(axis, "–") for axis in axes),
            f"{search.trials - search.left:,} of {search.trials:,}",
            states_in_words(search.ended, has_rule=False) if search.ended else "",
        )
        for search in searches
    ]
    yield from to_text((*axes, "trials", "ended"), rows)
    if trials:
        yield ""
        claims = [(worker.run, worker.step, in_words(worker.seconds), worker.place) for worker in trials]
        yield from to_text(("run of a trial", "step", "for", "worker"), claims)
    yield ""


def _job_table(jobs: Sequence[Submitted]) -> Iterator[str]:
    if queued := list(job_lines(jobs)):
        yield ""
        yield from to_text(("job", "in Slurm", "node", "why"), queued)


def _counts(statuses: Sequence[RunStatus], blocked: Blocked) -> Counter[str]:
    """Return the number of runs in each state, as the last line shows it."""
    return Counter(
        NOT_NEEDED if run.not_needed else PAUSED if run.state == "pending" and run.cell in blocked.paused else run.state
        for run in statuses
    )


def _closing(statuses: Sequence[RunStatus], searches: Sequence[Search], blocked: Blocked, has_rule: bool) -> str:
    states = states_in_words(_counts(statuses, blocked), has_rule=has_rule)
    of_trials = f"search: {trials_in_words(searches)}; " if any(search.left for search in searches) else ""
    return f"{of_trials}{count_of(len(statuses), 'run')}: {states}"


def _next(
    statuses: Sequence[RunStatus],
    searches: Sequence[Search],
    blocked: Blocked,
    name: str,
    context: Context,
    options: str,
) -> str:
    """Return the command that follows; before it, the one that shows why the last of the failed runs failed."""
    counts = _counts(statuses, blocked)
    if counts["pending"] or counts["interrupted"] or any(search.left for search in searches):
        return f"; next: {resume(name, options)}"
    if failed := [run.run for run in statuses if run.state == "failed"]:
        logs = context.command("logs", str(failed[-1]))
        return f"; see why with: {logs}; next: {retry_failed(name, options)}"
    return f"; next: {retry_cancelled(name, options)}" if counts["cancelled"] else ""
