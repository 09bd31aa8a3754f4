"""The runs of one sweep, one a line: how far they are, who works at them, and what holds them up."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kdx.cli.choosing import chosen as chosen_runs
from kdx.cli.console import out, out_json, out_lines, say
from kdx.cli.options import in_database, in_database_with_components, resume, retry_cancelled, retry_failed
from kdx.cli.slurm_jobs import job_lines, submitted
from kdx.cli.spared import NOT_NEEDED, PAUSED, spared_of
from kdx.cli.status_words import (
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
from kdx.store.find import sweep_named
from kdx.store.reading import by_ids, runs
from kdx.store.records import RunRecord
from kdx.store.remarks import remarks
from kdx.store.search_progress import SearchProgress, progress
from kdx.store.search_progress import work as work_of_trials
from kdx.store.status import WorkRecord, labels_of, work
from kdx.sweep.blocked import Blocked, blocked_in
from kdx.sweep.durations import in_words


def show_runs(database: Database, name: str, chosen: Sequence[str], db: str, json: bool) -> None:
    sweep_id = sweep_named(database, name)
    working = {one.run_id: one for one in work(database) if one.sweep_id == sweep_id}
    searches = [one for one in progress(database) if one.sweep_id == sweep_id]
    jobs = submitted(database).get(sweep_id, [])
    trials = [one for one in work_of_trials(database) if one.sweep_id == sweep_id]
    labels = labels_of(database, sweep_id)
    order = {cell_id: place for place, cell_id in enumerate(labels)}
    records = sorted(runs(database, sweep_id), key=lambda each: (each.seed, order.get(each.cell_id, 0)))
    written = remarks(database)
    rows = [
        {
            **_of_a_run(each, labels[each.cell_id], working.get(each.id)),
            "tags": list(written.tags_of_runs.get(each.id, ())),
            "notes": notes_to_json(written.of_runs.get(each.id, ())),
        }
        for each in records
    ]
    remarked = {*written.of_runs, *written.tags_of_runs} - {each.id for each in records}
    keys = {(each.cell_id, each.seed) for each in records}
    earlier = [each for each in by_ids(database, remarked) if (each.cell_id, each.seed) in keys]
    own: dict[str, list[Any]] = {
        "tags": list(written.tags_of_sweeps.get(sweep_id, ())),
        "notes": notes_to_json(written.of_sweeps.get(sweep_id, ())),
        "earlier": [
            {
                "run": each.id,
                "cell": each.cell_id,
                "seed": each.seed,
                "generation": each.generation,
                "invalidated": each.invalidated,
                "tags": list(written.tags_of_runs.get(each.id, ())),
                "notes": notes_to_json(written.of_runs.get(each.id, ())),
            }
            for each in earlier
        ],
    }
    spared = spared_of(database, [name])
    blocked = blocked_in(database, [sweep_id])[sweep_id]
    for row in rows:
        row["not_needed"] = spared[name].why.get(row["run"]) if spared else None
        row["waits_for"] = blocked.waits_for.get(row["run"])
    rows = chosen_runs(rows, chosen)
    if json:
        of_slurm = [one.plain for one in jobs]
        of_searches = {
            "searches": [search_to_json(one) for one in searches],
            "trials": [worker_to_json(one) for one in trials],
        }
        out_json({"sweep": name, **own, **blocked.as_json(), **of_searches, "slurm": of_slurm, "runs": rows})
        return
    where = in_database_with_components(db, database, name)
    if searches:
        _write_searches(searches, trials)
    axes = list(dict.fromkeys(axis for choices in labels.values() for axis in choices))
    lines = []
    for row in rows:
        took = in_words(row["seconds"]) if row["seconds"] is not None else ""
        choices = [row["choices"].get(axis, "–") for axis in axes]
        detail = _detail(row, working.get(row["run"]))
        tags = " ".join(row["tags"])
        word = str(row["seed"])
        seed = int(word) if word.isdigit() else word  # numbers stand to the right
        lines.append((row["run"], *choices, seed, row["state"], row["step"] or None, took, tags, detail))
    if lines or not searches:
        header = ("run", *axes, "seed", "state", "step", "took", "tags", "")
        out_lines(to_text(*without_blanks(header, lines, "tags")))
    if blocked_lines := blocked.lines(name, where):
        out("")
        out_lines(blocked_lines)
    if queued := list(job_lines(jobs)):
        out("")
        out_lines(to_text(("job", "in Slurm", "node", "why"), queued))
    if any(one.queued is None for one in jobs):
        say("note: Slurm does not answer here, so nothing is known of its jobs")
    of_runs = [(f"run {row['run']}", row["notes"]) for row in rows]
    of_runs += [(f"run {one['run']}, of seed {one['seed']} before", one["notes"]) for one in own["earlier"]]
    write_notes([(name, own["notes"]), *of_runs], own["tags"])
    counts = Counter(_counted(row, blocked) for row in rows)
    failed = [row["run"] for row in rows if row["state"] == "failed"]
    states = states_in_words(counts, at_most=bool(spared))
    searching = any(one.left for one in searches)
    if searching:
        counts["pending"] += 1  # to go on with, whatever the winners will be
    of_trials = f"search: {trials_in_words(searches)}; " if searching else ""
    then = _next(counts, failed, name, db, where)
    say(f"{of_trials}{len(rows):,} run{'' if len(rows) == 1 else 's'}: {states}{then}")


def _write_searches(searches: Sequence[SearchProgress], working: Sequence[WorkRecord]) -> None:
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
        claims = [(one.run_id, one.step, in_words(one.running), where_it_works(one)) for one in working]
        out_lines(to_text(("run of a trial", "step", "for", "worker"), claims))
    out("")


def _of_a_run(record: RunRecord, choices: Any, work: WorkRecord | None) -> dict[str, Any]:
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
        "worker": None if work is None else worker_to_json(work),
    }


def _counted(row: dict[str, Any], blocked: Blocked) -> str:
    """What a run counts as in the last line."""
    if row["not_needed"]:
        return NOT_NEEDED
    return PAUSED if row["state"] == "pending" and row["cell"] in blocked.paused else str(row["state"])


def _detail(row: dict[str, Any], work: WorkRecord | None) -> str:
    """Who works at a run, or why it ended, or its score."""
    if work is not None:
        return f"{where_it_works(work)}, for {in_words(work.running)}"
    if row["invalidated"]:
        return "; ".join(filter(None, (f"out of tables: {row['invalidated']}", row["error"])))
    if row["not_needed"]:
        return f"{NOT_NEEDED}: {row['not_needed']}"
    if row["waits_for"]:
        return str(row["waits_for"])
    return row["error"] or ("" if row["test_score"] is None else f"score {row['test_score']:.4g}")


def _next(counts: Any, failed: Any, name: str, db: str, where: str) -> str:
    """The command that follows; before it, the one that shows why the last of the failed runs failed."""
    if counts["pending"] or counts["interrupted"]:
        return f"; next: {resume(name, where)}"
    if failed:
        return f"; see why with: kdx logs {failed[-1]}{in_database(db)}; next: {retry_failed(name, where)}"
    return f"; next: {retry_cancelled(name, where)}" if counts["cancelled"] else ""
