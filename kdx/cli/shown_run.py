"""A run: its scores, settings, attempts, files, and where it ran."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.cli.run_view import RunView, run_view
from kdx.cli.shown import (
    Shown,
    cell_title,
    default_metrics,
    fact_lines,
    planners,
    settings_lines,
    sweeps_in_words,
    table_lines,
    test_metric,
)
from kdx.cli.wording import notes_in_words, process_in_words, process_of, size, time_in_words
from kdx.run_files.files import Kind, files_beside, files_of, folder_of, log_of
from kdx.run_files.folder_ownership import is_strange
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.details import RunDetails, run_details
from kdx.store.records import AttemptRecord
from kdx.store.remarks import remarks
from kdx.sweep.forecast import in_words


@dataclass(frozen=True)
class AttemptView:
    """One try at a run."""

    attempt: int
    started: float
    ended: float | None
    outcome: str | None
    first_step: int
    last_step: int | None
    machine: str | None
    process: int | None
    place: str
    """The process in words."""
    changes: str | None
    traceback: str | None


@dataclass(frozen=True, kw_only=True)
class ShownRun(RunView):
    """A run with all that is recorded of it but its curves and its documents."""

    newer: int | None
    """The run of a newer generation."""
    steps: int | None
    metrics: Mapping[str, float]
    settings: Mapping[str, Any]
    varies: Sequence[str]
    sweeps: Sequence[Mapping[str, Any]]
    attempts: Sequence[AttemptView]
    environment: Mapping[str, Any] | None
    data: str | None
    code: str | None
    changes: str | None
    evaluations: Sequence[Mapping[str, Any]]
    folder: str | None
    log: str | None
    files: Sequence[Mapping[str, Any]]


def shown_run(database: Database, run_id: int) -> Shown:
    """Return what there is to show of a run."""
    details = run_details(database, run_id)
    record, cell, origin = details.record, details.cell, details.provenance
    newest = max((run for run in cell.runs if run.key == record.key), key=lambda run: run.generation)
    folder = files_beside(database.location)
    # The folder of another database may have a run of the same cell and seed.
    files = () if is_strange(database) else files_of(folder, record)
    has_log = any(file.kind is Kind.LOG for file in files)
    steps = cell.spec.value("training.steps")
    shown = ShownRun(
        **vars(run_view(record, cell.labels, remarks(database))),
        newer=None if newest.generation <= record.generation else newest.id,
        steps=steps if isinstance(steps, int) else None,
        metrics=details.metrics,
        settings=cell.spec.plain,
        varies=cell.varies,
        sweeps=planners(cell),
        attempts=[_attempt(attempt) for attempt in details.attempts],
        environment=origin.environment,
        data=origin.data,
        code=origin.code,
        changes=origin.changes,
        evaluations=[
            {"settings": each.settings, "metrics": each.metrics, "error": each.error} for each in details.evaluations
        ],
        folder=str(folder / folder_of(record)) if files else None,
        log=str(log_of(folder, record)) if has_log else None,
        files=[{"name": file.name, "kind": file.kind.value, "bytes": file.size} for file in files],
    )
    title = f"run {record.id}: {cell_title(cell)} · seed {record.seed}, {record.state}"
    metrics = default_metrics([cell.spec.plain])
    return Shown(title, shown, lambda: _lines(title, shown, details), [(f"run {record.id}", record)], metrics)


def _attempt(attempt: AttemptRecord) -> AttemptView:
    machine, process = process_of(attempt.owner) or (None, None)
    return AttemptView(
        attempt=attempt.number,
        started=attempt.started,
        ended=attempt.ended,
        outcome=attempt.outcome,
        # The step of the checkpoint is unknown for an attempt that ended before it began.
        first_step=attempt.first_step if attempt.resumed_step is None else attempt.resumed_step,
        last_step=attempt.last_step,
        machine=machine,
        process=process,
        place=process_in_words(attempt.owner) or attempt.owner,
        changes=attempt.changes,
        traceback=attempt.traceback,
    )


def _lines(title: str, run: ShownRun, details: RunDetails) -> Iterator[str]:
    yield sanitize(title)
    environment = (run.environment or {}).items()
    yield from fact_lines(
        {
            "cell": run.cell,
            "sweeps": sweeps_in_words(details.cell),
            "generation": str(run.generation) if run.generation else "",
            "newer": f"run {run.newer} is a newer generation" if run.newer else "",
            "excluded": run.invalidated or "",
            "tags": " ".join(run.tags),
            "notes": notes_in_words(run.notes),
            "step": f"{run.step:,} of {run.steps:,}" if run.steps else f"{run.step:,}",
            "scores": ", ".join(_scores(run, details.cell.spec.selection_metric)),
            "error": run.error or "",
            "undertrained": run.undertrained or "",
            "took": f"{in_words(run.seconds)} in ended attempts" if run.seconds is not None else "",
            "ran on": ", ".join(f"{name} {value}" for name, value in environment if value is not None),
            "changed": run.changes or "",
            "files": ", ".join(f"{file['name']} ({size(file['bytes'])})" for file in run.files),
            "folder": run.folder or "",
            "log": run.log or "",
        }
    )
    if run.metrics:
        yield ""
        yield from table_lines(("metric", "value"), run.metrics.items())
    if run.evaluations:
        yield ""
        yield from table_lines(("evaluation", "scores"), map(_evaluation, run.evaluations))
    if run.attempts:
        yield ""
        head = ("attempt", "began (UTC)", "took", "steps", "outcome", "process", "changed")
        yield from table_lines(head, map(_attempt_row, run.attempts))
    yield ""
    yield from settings_lines(run.settings, run.varies)


def _attempt_row(attempt: AttemptView) -> tuple[Any, ...]:
    return (
        attempt.attempt,
        time_in_words(attempt.started),
        "" if attempt.ended is None else in_words(attempt.ended - attempt.started),
        f"{attempt.first_step:,}–{'' if attempt.last_step is None else f'{attempt.last_step:,}'}",
        attempt.outcome or "running",
        attempt.place,
        attempt.changes or "",
    )


def _evaluation(evaluation: Mapping[str, Any]) -> tuple[str, str]:
    settings = ", ".join(f"{name} {value}" for name, value in evaluation["settings"].items() if value is not None)
    scores = ", ".join(f"{name} {value:.4g}" for name, value in evaluation["metrics"].items())
    return settings, evaluation["error"] or scores


def _scores(run: RunView, metric: str) -> Iterator[str]:
    if run.valid_score is not None:
        yield f"{metric} {run.valid_score:.4g} at step {run.valid_step:,}"
    if run.test_score is not None:
        yield f"{test_metric(metric)} {run.test_score:.4g}"
