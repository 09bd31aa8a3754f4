"""How far every sweep is, who works at it, and how long it will take."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kdx.cli.console import out, out_json, out_lines, say
from kdx.cli.options import in_database_with_components
from kdx.cli.slurm_jobs import submitted, summary_lines
from kdx.cli.spared import spared_of
from kdx.cli.status_words import (
    is_alive,
    notes_to_json,
    search_to_json,
    states_in_words,
    trials_in_words,
    where_it_works,
    without_blanks,
    worker_to_json,
    write_notes,
)
from kdx.report.writers.rows import to_text
from kdx.store.database import Database
from kdx.store.reading import sweeps
from kdx.store.records import FINAL, OVER, SweepSummary
from kdx.store.remarks import remarks
from kdx.store.search_progress import SearchProgress, progress, seconds_of_trials
from kdx.store.search_progress import work as work_of_trials
from kdx.store.status import times, work
from kdx.sweep.blocked import Blocked, blocked_in
from kdx.sweep.durations import in_words
from kdx.sweep.forecast import seconds_left


def show_sweeps(database: Database, db: str, json: bool) -> None:
    summaries = sweeps(database)
    spared = spared_of(database, [each.name for each in summaries if set(each.counts) - OVER])
    summaries = tuple(spared[each.name].without(each) if each.name in spared else each for each in summaries)
    by_id = {each.id: spared[each.name] for each in summaries if each.name in spared}
    written = remarks(database)
    unfinished = [each.id for each in summaries if set(each.counts) - OVER]
    cells, working = defaultdict(list), defaultdict(list)
    for time in times(database, unfinished) if unfinished else ():
        cells[time.sweep_id].append(by_id[time.sweep_id].shortened(time) if time.sweep_id in by_id else time)
    for one in (*work(database), *work_of_trials(database)):
        working[one.sweep_id].append(one)
    searches = defaultdict(list)
    for search in progress(database):
        searches[search.sweep_id].append(search)
    # A sweep that is still searched may have no run of its own yet.
    searching = {key for key, its in searches.items() if any(one.left for one in its)}
    blocked = blocked_in(database, [each.id for each in summaries if each.id in searching or set(each.counts) - FINAL])
    jobs = submitted(database)
    took = seconds_of_trials(database) if any(one.left for its in searches.values() for one in its) else {}
    rows: list[dict[str, Any]] = []
    for each in summaries:
        alive = [one for one in working[each.id] if is_alive(one)]
        left = seconds_left(cells[each.id], alive) if each.id in unfinished else 0.0
        searched = searches[each.id]
        if any(one.left for one in searched):
            left = _seconds_of_trials(took.get(each.id), searched, len(alive))
        rows.append(
            {
                "sweep": each.name,
                "runs": {state.value: count for state, count in each.counts.items()},
                "searches": [search_to_json(one) for one in searched],
                "slurm": [one.plain for one in jobs.get(each.id, ())],
                "working": [worker_to_json(one) for one in working[each.id]],  # claimed, by whoever may be gone
                "seconds_left": left,
                "planned": each.updated,
                "tags": list(written.tags_of_sweeps.get(each.id, ())),
                "notes": notes_to_json(written.of_sweeps.get(each.id, ())),
                **(blocked[each.id] if each.id in blocked else Blocked({}, {})).as_json(),
            }
        )
    if json:
        out_json(rows)
        return
    if not rows:
        say("no sweep is recorded here yet; kdx sweep GRID records one")
        return
    lines = []
    for each, row in zip(summaries, rows, strict=True):
        workers = sum(map(is_alive, working[each.id]))
        tags = " ".join(row["tags"])
        states = states_in_words(row["runs"], at_most=each.name in spared)
        if any(one.left for one in searches[each.id]):
            states = f"search: {trials_in_words(searches[each.id])}; then {states if row['runs'] else 'the winners'}"
        lines.append((each.name, _done(each), states, _time_left(row, workers), tags))
    out_lines(to_text(*without_blanks(("sweep", "done", "states", "time left", "tags"), lines, "tags")))
    at_work = [(each.name, one) for each in summaries for one in working[each.id]]
    if at_work:
        claims = [(name, one.run_id, one.step, in_words(one.running), where_it_works(one)) for name, one in at_work]
        out("")
        out_lines(to_text(("sweep", "run", "step", "for", "worker"), claims))
    lines_of = {
        each.name: blocked[each.id].lines(each.name, in_database_with_components(db, database, each.name))
        for each in summaries
        if each.id in blocked and blocked[each.id].lines(each.name, "")
    }
    if any(lines_of.values()):
        out("")
        out_lines(line for its in lines_of.values() for line in its)
    if of_slurm := [line for each in summaries for line in summary_lines(each.name, jobs.get(each.id, ()))]:
        out("")
        out_lines(to_text(("sweep", "job array", "jobs", "in Slurm"), of_slurm))
    write_notes([(row["sweep"], row["notes"]) for row in rows])


def _seconds_of_trials(mean: float | None, searches: Sequence[SearchProgress], workers: int) -> float | None:
    """Until all trials have ended, if each run takes as long as those that have on average; None: none has."""
    return None if mean is None else mean * sum(one.left * one.seeds for one in searches) / max(1, workers)


def _done(each: SweepSummary) -> str:
    total = sum(each.counts.values())
    return f"{sum(each.counts.get(state, 0) for state in FINAL):,} of {total:,}"


def _time_left(row: dict[str, Any], workers: int) -> str:
    if row["seconds_left"] is None:
        return "unknown: none is completed"
    searching = any(sum(one["ended"].values()) < one["trials"] for one in row["searches"])
    if not searching and not set(row["runs"]) & {"pending", "interrupted", "running"}:
        return ""
    of_search = " for the search" if searching else ""
    return f"about {in_words(row['seconds_left'])}{of_search}{'' if workers else ' once somebody works at it'}"
