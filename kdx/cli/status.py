"""`kdx status`: how far sweeps are."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.choosing import chosen as chosen_runs
from kdx.cli.console import out, out_json, out_lines, say
from kdx.cli.options import DATABASE, Db, Files, Json, in_database, retry_cancelled
from kdx.cli.processes import process_in_words, process_of
from kdx.cli.spared import NOT_NEEDED, spared_of
from kdx.durations import in_words
from kdx.sanitize import sanitize
from kdx.seed_sources import seed_word

if TYPE_CHECKING:
    from kdx.store.database import Database
    from kdx.store.records import RunRecord, SweepSummary
    from kdx.store.remarks import NoteRecord
    from kdx.store.search_progress import SearchProgress
    from kdx.store.status import WorkRecord


def status(
    sweep: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.sweeps, metavar="[SWEEP]", help="One sweep, run by run; all sweeps if not said."
        ),
    ] = None,
    chosen: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.choices,
            metavar="[KEY=VALUE]…",
            help="Only runs that have this, such as state=failed, kernel=rbf, seed=0 or tag=odd; an axis, or what "
            "--json has.",
        ),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Say how far sweeps are, who works at them, and how long they will take.

    Example: kdx status

    Example: kdx status quickstart state=failed
    """
    from kdx.store.database import open_database

    with open_database(db, write=False) as database, database.read():
        if sweep is None:
            _all_sweeps(database, db, json)
        else:
            _one_sweep(database, sweep, chosen or [], db, json)


def _all_sweeps(database: "Database", db: str, json: bool) -> None:
    from kdx.cli.slurm_jobs import submitted, summary_lines
    from kdx.report.render.rows import to_text
    from kdx.store.reading import sweeps
    from kdx.store.records import FINAL, OVER
    from kdx.store.remarks import remarks
    from kdx.store.search_progress import progress, seconds_of_trials
    from kdx.store.search_progress import work as work_of_trials
    from kdx.store.status import times, work
    from kdx.sweep.forecast import seconds_left
    from kdx.sweep.held_up import HeldUp, held_up_in

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
    held_up = {each.id: held_up_in(database, each.id) for each in summaries if set(each.counts) - FINAL}
    jobs = submitted(database)
    took = seconds_of_trials(database) if any(one.left for its in searches.values() for one in its) else {}
    rows: list[dict[str, Any]] = []
    for each in summaries:
        alive = [one for one in working[each.id] if _alive(one)]
        left = seconds_left(cells[each.id], alive) if each.id in unfinished else 0.0
        searched = searches[each.id]
        if any(one.left for one in searched):
            left = _seconds_of_trials(took.get(each.id), searched, len(alive))
        rows.append(
            {
                "sweep": each.name,
                "runs": {state.value: count for state, count in each.counts.items()},
                "searches": [_search(one) for one in searched],
                "slurm": [one.plain for one in jobs.get(each.id, ())],
                "working": [_worker(one) for one in working[each.id]],  # claimed, by whoever may be gone
                "seconds_left": left,
                "planned": each.updated,
                "tags": list(written.tags_of_sweeps.get(each.id, ())),
                "notes": _notes(written.of_sweeps.get(each.id, ())),
                **(held_up[each.id] if each.id in held_up else HeldUp({}, {}, {})).as_json(),
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
        workers = sum(map(_alive, working[each.id]))
        tags = " ".join(row["tags"])
        states = _states(row["runs"], at_most=each.name in spared)
        if any(one.left for one in searches[each.id]):
            states = f"search: {_trials(searches[each.id])}; then {states if row['runs'] else 'the winners'}"
        lines.append((each.name, _done(each), states, _time_left(row, workers), tags))
    out_lines(to_text(*_without_blanks(("sweep", "done", "states", "time left", "tags"), lines, "tags")))
    at_work = [(each.name, one) for each in summaries for one in working[each.id]]
    if at_work:
        claims = [(name, one.run_id, one.step, in_words(one.running), _where(one)) for name, one in at_work]
        out("")
        out_lines(to_text(("sweep", "run", "step", "for", "worker"), claims))
    lines_of = {
        each.name: held_up[each.id].lines(each.name, in_database(db)) for each in summaries if each.id in held_up
    }
    if any(lines_of.values()):
        out("")
        out_lines(line for its in lines_of.values() for line in its)
    if of_slurm := [line for each in summaries for line in summary_lines(each.name, jobs.get(each.id, ()))]:
        out("")
        out_lines(to_text(("sweep", "job array", "jobs", "in Slurm"), of_slurm))
    _write_notes([(row["sweep"], row["notes"]) for row in rows])


def _one_sweep(database: "Database", name: str, chosen: Sequence[str], db: str, json: bool) -> None:
    from kdx.cli.slurm_jobs import job_lines, submitted
    from kdx.report.render.rows import to_text
    from kdx.store.find import sweep_named
    from kdx.store.reading import by_ids, former_ids, runs
    from kdx.store.remarks import remarks
    from kdx.store.search_progress import progress
    from kdx.store.search_progress import work as work_of_trials
    from kdx.store.status import labels_of, work
    from kdx.sweep.held_up import held_up_in

    sweep_id = sweep_named(database, name)
    working = {one.run_id: one for one in work(database) if one.sweep_id == sweep_id}
    searches = [one for one in progress(database) if one.sweep_id == sweep_id]
    jobs = submitted(database).get(sweep_id, [])
    trials = [one for one in work_of_trials(database) if one.sweep_id == sweep_id]
    labels = labels_of(database, sweep_id)
    order = {cell_id: place for place, cell_id in enumerate(labels)}
    records = sorted(runs(database, sweep_id), key=lambda each: (each.seed, order.get(each.cell_id, 0)))
    written, former = remarks(database), former_ids(database)
    rows = [
        {
            **_of_a_run(each, labels[each.cell_id], working.get(each.id)),
            "former_cells": list(former.get(each.cell_id, ())),
            "tags": list(written.tags_of_runs.get(each.id, ())),
            "notes": _notes(written.of_runs.get(each.id, ())),
        }
        for each in records
    ]
    remarked = {*written.of_runs, *written.tags_of_runs} - {each.id for each in records}
    keys = {(each.cell_id, each.seed) for each in records}
    earlier = [each for each in by_ids(database, remarked) if (each.cell_id, each.seed) in keys]
    own: dict[str, list[Any]] = {
        "tags": list(written.tags_of_sweeps.get(sweep_id, ())),
        "notes": _notes(written.of_sweeps.get(sweep_id, ())),
        "earlier": [
            {
                "run": each.id,
                "cell": each.cell_id,
                "seed": each.seed,
                "generation": each.generation,
                "invalidated": each.invalidated,
                "tags": list(written.tags_of_runs.get(each.id, ())),
                "notes": _notes(written.of_runs.get(each.id, ())),
            }
            for each in earlier
        ],
    }
    spared = spared_of(database, [name])
    held_up = held_up_in(database, sweep_id)
    for row in rows:
        row["not_needed"] = spared[name].why.get(row["run"]) if spared else None
        row["waits_for"] = held_up.why(row["run"])
    rows = chosen_runs(rows, chosen)
    if json:
        of_slurm = [one.plain for one in jobs]
        of_searches = {"searches": [_search(one) for one in searches], "trials": [_worker(one) for one in trials]}
        out_json({"sweep": name, **own, **held_up.as_json(), **of_searches, "slurm": of_slurm, "runs": rows})
        return
    if searches:
        _write_searches(searches, trials)
    axes = list(dict.fromkeys(axis for choices in labels.values() for axis in choices))
    lines = []
    for row in rows:
        took = in_words(row["seconds"]) if row["seconds"] is not None else ""
        choices = [row["choices"].get(axis, "–") for axis in axes]
        detail = _detail(row, working.get(row["run"]))
        tags = " ".join(row["tags"])
        word = seed_word(row["seed"])
        seed = int(word) if word.isdigit() else word  # numbers stand to the right
        lines.append((row["run"], *choices, seed, row["state"], row["step"] or None, took, tags, detail))
    if lines or not searches:
        header = ("run", *axes, "seed", "state", "step", "took", "tags", "")
        out_lines(to_text(*_without_blanks(header, lines, "tags")))
    if lines_held_up := held_up.lines(name, in_database(db)):
        out("")
        out_lines(lines_held_up)
    if queued := list(job_lines(jobs)):
        out("")
        out_lines(to_text(("job", "in Slurm", "node", "why"), queued))
    if any(one.queued is None for one in jobs):
        say("note: Slurm does not answer here, so nothing is known of its jobs")
    of_runs = [(f"run {row['run']}", row["notes"]) for row in rows]
    of_runs += [(f"run {one['run']}, of seed {seed_word(one['seed'])} before", one["notes"]) for one in own["earlier"]]
    _write_notes([(name, own["notes"]), *of_runs], own["tags"])
    counts = Counter(NOT_NEEDED if row["not_needed"] else row["state"] for row in rows)
    states = _states(counts, at_most=bool(spared))
    searching = any(one.left for one in searches)
    if searching:
        counts["pending"] += 1  # to go on with, whatever the winners will be
    of_trials = f"search: {_trials(searches)}; " if searching else ""
    say(f"{of_trials}{len(rows):,} run{'' if len(rows) == 1 else 's'}: {states}{_next(counts, name, db)}")


def _search(one: "SearchProgress") -> dict[str, Any]:
    return {
        "choices": dict(one.labels),
        "trials": one.trials,
        "ended": {state.value: count for state, count in one.ended.items()},
        "runs_of_a_trial": one.seeds,
    }


def _trials(searches: "Sequence[SearchProgress]") -> str:
    """How many trials of them all have ended."""
    asked = sum(one.trials for one in searches)
    return f"{asked - sum(one.left for one in searches):,} of {asked:,} trials"


def _write_searches(searches: "Sequence[SearchProgress]", working: "Sequence[WorkRecord]") -> None:
    from kdx.report.render.rows import to_text

    axes = list(dict.fromkeys(axis for one in searches for axis in one.labels))
    rows = [
        (
            *(one.labels.get(axis, "–") for axis in axes),
            f"{one.trials - one.left:,} of {one.trials:,}",
            ", ".join(f"{count:,} {state}" for state, count in one.ended.items()),
        )
        for one in searches
    ]
    out_lines(to_text((*axes, "trials", "ended"), rows))
    if working:
        out("")
        claims = [(one.run_id, one.step, in_words(one.running), _where(one)) for one in working]
        out_lines(to_text(("run of a trial", "step", "for", "worker"), claims))
    out("")


def _seconds_of_trials(mean: float | None, searches: "Sequence[SearchProgress]", workers: int) -> float | None:
    """Until all trials have ended, if each run takes as long as those that have on average; None: none has."""
    return None if mean is None else mean * sum(one.left * one.seeds for one in searches) / max(1, workers)


def _of_a_run(record: "RunRecord", choices: Any, work: "WorkRecord | None") -> dict[str, Any]:
    return {
        "run": record.id,
        "cell": record.cell_id,
        "choices": dict(choices),
        "seed": record.seed,
        "state": record.state.value,
        "step": record.progress_step,
        "attempts": record.attempt,
        "seconds": record.seconds,
        "valid_score": record.valid_score,
        "test_score": record.test_score,
        "error": record.error,
        "invalidated": record.invalidated,
        "worker": None if work is None else _worker(work),
    }


def _detail(row: dict[str, Any], work: "WorkRecord | None") -> str:
    """Who works at a run, or why it ended, or its score."""
    if work is not None:
        return f"{_where(work)}, for {in_words(work.running)}"
    if row["invalidated"]:
        return "; ".join(filter(None, (f"out of tables: {row['invalidated']}", row["error"])))
    if row["not_needed"]:
        return f"{NOT_NEEDED}: {row['not_needed']}"
    if row["waits_for"]:
        return str(row["waits_for"])
    return row["error"] or ("" if row["test_score"] is None else f"score {row['test_score']:.4g}")


def _notes(written: "Sequence[NoteRecord]") -> list[dict[str, Any]]:
    return [{"made": one.made, "text": one.text} for one in written]


def _without_blanks(
    columns: Sequence[str], lines: list[tuple[Any, ...]], column: str
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Header and lines, less this column where it is blank in all of them."""
    at = columns.index(column)
    if any(line[at] for line in lines):
        return tuple(columns), lines
    return (*columns[:at], *columns[at + 1 :]), [(*line[:at], *line[at + 1 :]) for line in lines]


def _write_notes(notes: Sequence[tuple[str, list[dict[str, Any]]]], tags: Sequence[str] = ()) -> None:
    from datetime import UTC, datetime

    from kdx.report.render.rows import to_text

    rows = [
        (on, datetime.fromtimestamp(one["made"], UTC).strftime("%Y-%m-%d %H:%M"), " ".join(one["text"].split()))
        for on, its in notes
        for one in its
    ]
    if rows:
        out("")
        out_lines(to_text(("on", "written (UTC)", "note"), rows))
    if tags:
        out("")
        out_lines([f"tags: {sanitize(' '.join(tags))}"])


def _done(each: "SweepSummary") -> str:
    from kdx.store.records import FINAL

    total = sum(each.counts.values())
    return f"{sum(each.counts.get(state, 0) for state in FINAL):,} of {total:,}"


def _states(counts: Any, *, at_most: bool) -> str:
    """How many runs are in each state; where a rule decides how many are needed, pending ones are the most."""
    most = {"pending": "at most "} if at_most else {}
    return ", ".join(f"{most.get(state, '')}{count:,} {state}" for state, count in counts.items()) or "no runs"


def _time_left(row: dict[str, Any], workers: int) -> str:
    if row["seconds_left"] is None:
        return "unknown: none is completed"
    searching = any(sum(one["ended"].values()) < one["trials"] for one in row["searches"])
    if not searching and not set(row["runs"]) & {"pending", "interrupted", "running"}:
        return ""
    of_search = " for the search" if searching else ""
    return f"about {in_words(row['seconds_left'])}{of_search}{'' if workers else ' once somebody works at it'}"


def _next(counts: Any, name: str, db: str) -> str:
    import shlex

    quoted = shlex.quote(name)
    if counts["pending"] or counts["interrupted"]:
        return f"; next: kdx resume {quoted}{in_database(db)}"
    if counts["failed"]:
        return f"; next: kdx resume {quoted} --failed{in_database(db)}"
    return f"; next: {retry_cancelled(name, db)}" if counts["cancelled"] else ""


def _worker(one: "WorkRecord") -> dict[str, Any]:
    return {
        "run": one.run_id,
        "step": one.step,
        "seconds": one.running,
        "lease_left": one.lease_left,
        "device": one.device,
        "gpu": one.gpu,
        **process_of(one.owner),
    }


def _alive(one: "WorkRecord") -> bool:
    """Whether its process may still work: it was not found dead."""
    from kdx.sweep.lease_holder import Liveness, liveness

    return one.owner is not None and liveness(one.owner) is not Liveness.GONE


def _where(one: "WorkRecord") -> str:
    process = process_in_words(one.owner)
    if process is None:
        return "a process of another kdx"
    lapsed = one.lease_left is not None and one.lease_left < 0
    state = ", which is gone" if not _alive(one) else ", whose lease has lapsed" if lapsed else ""
    on = "" if one.gpu is None else f", on GPU {one.gpu} ({one.device})"
    return f"{process}{state}{on}"
