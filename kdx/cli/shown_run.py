"""A run: its scores, settings, attempts, files, and where it ran."""

from collections.abc import Iterator, Mapping
from typing import Any

from kdx.cli.amounts import size
from kdx.cli.processes import process_in_words, process_of
from kdx.cli.shown import (
    Shown,
    default_metrics,
    fact_lines,
    named,
    notes_in_words,
    planners_to_json,
    run_to_json,
    settings_lines,
    table_lines,
    time_in_words,
)
from kdx.run_files.files import Kind, files_beside, files_of, folder_of, log_of
from kdx.run_files.folder_ownership import is_strange
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.details import RunDetails, run_details
from kdx.store.records import AttemptRecord, EvaluationRecord, RunRecord
from kdx.store.remarks import remarks
from kdx.sweep.durations import in_words


class ShownRun(Shown):
    def __init__(self, database: Database, run_id: int) -> None:

        self.details = details = run_details(database, run_id)
        record, cell = details.record, details.cell
        self.remarks = remarks(database)
        newest = max((one for one in cell.runs if one.seed == record.seed), key=lambda one: one.generation)
        self.newer = None if newest.generation <= record.generation else newest
        self.title = f"run {record.id}: {named(cell.labels, cell.spec.task)} · seed {record.seed}, {record.state}"
        self.drawn = [(f"run {record.id}", record)]
        self.metrics = default_metrics([cell.spec.plain])
        files = files_beside(database.location)
        self.folder = files / folder_of(record)
        # The folder of another database may have a run of the same cell and seed.
        self.files = () if is_strange(database) else files_of(files, record)
        self.log = log_of(files, record) if any(file.kind is Kind.LOG for file in self.files) else None

    def plain(self) -> dict[str, Any]:
        details, record = self.details, self.details.record
        origin = details.provenance
        return {
            **run_to_json(record, self.remarks),
            "newer": None if self.newer is None else self.newer.id,
            "steps": details.cell.spec.value("training.steps"),
            "metrics": dict(details.metrics),
            "settings": dict(details.cell.spec.plain),
            "varies": list(details.cell.varies),
            "sweeps": planners_to_json(details.cell),
            "attempts": [_plain_attempt(one) for one in details.attempts],
            "environment": origin.environment,
            "data": origin.data,
            "code": origin.code,
            "changes": origin.changes,
            "evaluations": [
                {"settings": dict(one.settings), "metrics": dict(one.metrics), "error": one.error}
                for one in details.evaluations
            ],
            "folder": str(self.folder) if self.files else None,
            "log": None if self.log is None else str(self.log),
            "files": [{"name": one.name, "kind": one.kind.value, "bytes": one.size} for one in self.files],
        }

    def lines(self, db: str) -> Iterator[str]:
        details, record = self.details, self.details.record
        cell, steps = details.cell, details.cell.spec.value("training.steps")
        yield sanitize(self.title)
        facts = {
            "cell": cell.id,
            "sweeps": ", ".join(one.sweep for one in cell.planners) or "none plans it any more",
            "generation": str(record.generation) if record.generation else "",
            "newer": f"run {self.newer.id}, {self.newer.state}, is a newer generation" if self.newer else "",
            "out of tables": record.invalidated or "",
            "tags": " ".join(self.remarks.tags_of_runs.get(record.id, ())),
            "notes": notes_in_words(self.remarks.of_runs.get(record.id, ())),
            "step": f"{record.progress_step:,} of {steps:,}" if isinstance(steps, int) else f"{record.progress_step:,}",
            "scores": ", ".join(_scores(record, details)),
            "error": record.error or "",
            "undertrained": record.undertrained or "",
            "took": f"{in_words(record.seconds)} in ended attempts" if record.seconds is not None else "",
            "ran on": _place(details.provenance.environment),
            "changed": details.provenance.changes or "",
            "files": ", ".join(f"{one.name} ({size(one.size)})" for one in self.files),
            "folder": str(self.folder) if self.files else "",
            "log": "" if self.log is None else str(self.log),
        }
        yield from fact_lines(facts)
        if details.metrics:
            yield ""
            yield from table_lines(("metric", "value"), details.metrics.items())
        if details.evaluations:
            yield ""
            yield from table_lines(("evaluation", "scores"), map(_evaluation, details.evaluations))
        if details.attempts:
            yield ""
            head = ("attempt", "began (UTC)", "took", "steps", "outcome", "process", "changed")
            yield from table_lines(head, map(_attempt, details.attempts))
        yield ""
        yield from settings_lines(cell.spec, cell.varies)


def _plain_attempt(one: AttemptRecord) -> dict[str, Any]:
    return {
        "attempt": one.number,
        "started": one.started,
        "ended": one.ended,
        "outcome": one.outcome,
        "first_step": _first_step(one),
        "last_step": one.last_step,
        **process_of(one.owner),
        "changes": one.changes,
        "traceback": one.traceback,
    }


def _first_step(one: AttemptRecord) -> int:
    # The step of the checkpoint is not known for an attempt that ended before it began.
    return one.first_step if one.resumed_step is None else one.resumed_step


def _attempt(one: AttemptRecord) -> tuple[Any, ...]:
    return (
        one.number,
        time_in_words(one.started),
        "" if one.ended is None else in_words(one.ended - one.started),
        f"{_first_step(one):,}–{'' if one.last_step is None else f'{one.last_step:,}'}",
        one.outcome or "running",
        process_in_words(one.owner) or one.owner,
        one.changes or "",
    )


def _evaluation(one: EvaluationRecord) -> tuple[str, str]:
    settings = ", ".join(f"{name} {value}" for name, value in one.settings.items() if value is not None)
    return settings, one.error or ", ".join(f"{name} {value:.4g}" for name, value in one.metrics.items())


def _scores(record: RunRecord, details: RunDetails) -> Iterator[str]:
    metric = details.cell.spec.selection_metric
    if record.valid_score is not None:
        yield f"{metric} {record.valid_score:.4g} at step {record.valid_step:,}"
    if record.test_score is not None:
        yield f"{metric.replace('valid/', 'test/', 1)} {record.test_score:.4g}"


def _place(environment: Mapping[str, Any] | None) -> str:
    """The machine and the libraries of the last attempt."""
    return ", ".join(f"{name} {value}" for name, value in (environment or {}).items() if value is not None)
