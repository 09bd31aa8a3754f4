"""A run: its scores, settings, attempts, files, and where it ran."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kdx.cli.console import without_blanks
from kdx.cli.named_runs import RunView, run_view
from kdx.cli.shown import (
    ATTEMPT,
    Panel,
    Shown,
    attempt_row,
    cell_title,
    fact_lines,
    first_step,
    layer_lines,
    planners,
    settings_lines,
    sweeps_in_words,
    table_lines,
    test_metric,
    written_facts,
)
from kdx.cli.wording import process_in_words, process_of, shown_score, size
from kdx.report.wording import rounded
from kdx.run_files.files import Kind, files_beside, files_of, folder_of, log_of
from kdx.run_files.folder_ownership import is_strange
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.details import RunDetails, run_details
from kdx.store.records import AttemptRecord, EvaluationRecord
from kdx.store.remarks import remarks
from kdx.sweep.forecast import in_words

_HASH = re.compile(r"\b[0-9a-f]{64}\b")


def shown_run(database: Database, run_id: int) -> Shown:
    """Return what there is to show of a run: all that is recorded but its curves and its documents."""
    details = run_details(database, run_id)
    view = run_view(details.record, details.cell.labels, remarks(database))
    facts = {**_facts(details), **_files(database, details)}
    title = f"run {run_id}: {cell_title(details.cell)} · seed {details.record.seed}, {details.record.state}"
    return Shown(
        title,
        {**view.plain, **facts},
        lambda: _lines(title, view, details, facts),
        [Panel("", [(f"run {run_id}", details.record)], [details.cell.spec])],
    )


def _facts(details: RunDetails) -> dict[str, Any]:
    record, cell, origin = details.record, details.cell, details.provenance
    newest = max((run for run in cell.runs if run.key == record.key), key=lambda run: run.generation)
    steps = cell.spec.value("training.steps")
    return {
        "newer": None if newest.generation <= record.generation else newest.id,
        "steps": steps if isinstance(steps, int) else None,
        "metrics": details.metrics,
        "settings": cell.spec.plain,
        "varies": cell.varies,
        "sweeps": planners(cell),
        "attempts": [_attempt(attempt) for attempt in details.attempts],
        "environment": origin.environment,
        "data": origin.data,
        "code": origin.code,
        "changes": origin.changes,
        "evaluations": [
            {"settings": each.settings, "metrics": each.metrics, "error": each.error} for each in details.evaluations
        ],
    }


def _attempt(attempt: AttemptRecord) -> dict[str, Any]:
    machine, process = process_of(attempt.owner) or (None, None)
    return {
        "attempt": attempt.number,
        "started": attempt.started,
        "ended": attempt.ended,
        "outcome": attempt.outcome,
        "first_step": first_step(attempt),
        "last_step": attempt.last_step,
        "machine": machine,
        "process": process,
        "place": process_in_words(attempt.owner) or attempt.owner,
        "changes": attempt.changes,
        "traceback": attempt.traceback,
    }


def _files(database: Database, details: RunDetails) -> dict[str, Any]:
    folder = files_beside(database.location)
    # The folder of another database may have a run of the same cell and seed.
    files = () if is_strange(database) else files_of(folder, details.record)
    has_log = any(file.kind is Kind.LOG for file in files)
    return {
        "folder": str(folder / folder_of(details.record)) if files else None,
        "log": str(log_of(folder, details.record)) if has_log else None,
        "files": [{"name": file.name, "kind": file.kind.value, "bytes": file.size} for file in files],
    }


def _lines(title: str, view: RunView, details: RunDetails, facts: Mapping[str, Any]) -> Iterator[str]:
    run, steps = details.record, facts["steps"]
    environment = (facts["environment"] or {}).items()
    yield sanitize(title)
    yield from fact_lines(
        {
            "cell": run.cell_id,
            "sweeps": sweeps_in_words(details.cell),
            "generation": str(run.generation) if run.generation else "",
            "newer": f"run {facts['newer']} is a newer generation" if facts["newer"] else "",
            **written_facts(view),
            "step": f"{run.progress_step:,} of {steps:,}" if steps else f"{run.progress_step:,}",
            "scores": ", ".join(_scores(details)),
            "error": run.error or "",
            "undertrained": run.undertrained or "",
            "took": f"{in_words(run.seconds)} in ended attempts" if run.seconds is not None else "",
            "ran on": ", ".join(f"{name} {value}" for name, value in environment if value is not None),
            "changed": facts["changes"] or "",
            "files": ", ".join(f"{_file(file['name'])} ({size(file['bytes'])})" for file in facts["files"]),
            "folder": facts["folder"] or "",
            "log": facts["log"] or "",
        }
    )
    if details.metrics:
        yield ""
        yield from table_lines(("metric", "value"), _metrics(details))
    if details.evaluations:
        yield ""
        yield from table_lines(("evaluation", "scores"), map(_evaluation, details.evaluations))
    if details.attempts:
        yield ""
        attempts = [attempt_row(attempt) for attempt in details.attempts]
        yield from table_lines(*without_blanks(ATTEMPT, attempts, "changed"), spare=("took",))
    yield from layer_lines(details.cell.spec)
    yield ""
    yield from settings_lines(facts["settings"], facts["varies"])


def _file(name: str) -> str:
    """Return the name of a file with no more of a hash than tells it apart."""
    return _HASH.sub(lambda sha256: f"{sha256[0][:8]}…", name)


def _metrics(details: RunDetails) -> Iterator[tuple[str, Any]]:
    for name, value in details.metrics.items():
        yield name, shown_score(value, name)


def _evaluation(evaluation: EvaluationRecord) -> tuple[str, str]:
    settings = ", ".join(f"{name} {value}" for name, value in evaluation.settings.items() if value is not None)
    scores = ", ".join(f"{name} {rounded(value, name)}" for name, value in evaluation.metrics.items())
    return settings, evaluation.error or scores


def _scores(details: RunDetails) -> Iterator[str]:
    run, metric = details.record, details.cell.spec.selection_metric
    if run.valid_score is not None:
        yield f"{metric} {rounded(run.valid_score, metric)} at step {run.valid_step:,}"
    if run.test_score is not None:
        yield f"{test_metric(metric)} {rounded(run.test_score, metric)}"
