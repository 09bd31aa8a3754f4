"""What `kdx show` says of a run, of a cell and of a sweep: in lines, and for programs.

What it says of searches is imported where a cell is shown: it takes as long as all else that a run needs.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kdx.cli.choosing import chosen
from kdx.cli.options import in_database
from kdx.cli.processes import process_in_words, process_of
from kdx.cli.wording import size
from kdx.durations import in_words
from kdx.grid.cell_selector import word
from kdx.grid.varying import value, varying_first
from kdx.report.render.rows import to_text
from kdx.report.render.settings import as_yaml
from kdx.report.selection.best_seed import best_seed, standing_runs
from kdx.report.statistics.metric import Metric
from kdx.run_files.files import Kind, files_beside, files_of, folder_of, log_of
from kdx.run_files.folder_ownership import stranger
from kdx.sanitize import sanitize, sanitize_lines
from kdx.seed_sources import seed_word
from kdx.store.database import Database
from kdx.store.details import CellDetails, PlannedCellDetails, RunDetails, cell_details, run_details, sweep_details
from kdx.store.reading import former_ids
from kdx.store.records import AttemptRecord, EvaluationRecord, RunRecord, RunState
from kdx.store.remarks import NoteRecord, Remarks, remarks
from kdx.vocabulary import Direction

LOSS = "train/loss"
MOST_CELLS = 40
"""Cells of a sweep that are listed; kdx status lists the runs of all."""
MOST_VALUES = 8
"""Values of a varying field that are listed."""


class Shown:
    """What is shown: a run, a cell, or a sweep."""

    title: str
    drawn: Sequence[tuple[str, RunRecord]]
    """The runs whose curves are drawn, each with the name that the legend gives it."""
    metrics: Sequence[str]
    """The metrics that are drawn if nothing else is asked for."""

    def plain(self) -> dict[str, Any]:
        """For `--json`; docs/looking.md has the layout."""
        raise NotImplementedError

    def lines(self, db: str) -> Iterator[str]:
        raise NotImplementedError


class ShownRun(Shown):
    def __init__(self, database: Database, run_id: int) -> None:

        self.details = details = run_details(database, run_id)
        record, cell = details.record, details.cell
        self.remarks = remarks(database)
        self.former = former_ids(database).get(cell.id, ())
        newest = max((one for one in cell.runs if one.seed == record.seed), key=lambda one: one.generation)
        self.newer = None if newest.generation <= record.generation else newest
        self.title = (
            f"run {record.id}: {_named(cell.labels, cell.spec.task)} · seed {seed_word(record.seed)}, {record.state}"
        )
        self.drawn = [(f"run {record.id}", record)]
        self.metrics = _default_metrics([cell.spec.plain])
        files = files_beside(database.location)
        self.folder = files / folder_of(record)
        # The folder of another database may have a run of the same cell and seed.
        self.files = () if stranger(database) else files_of(files, record)
        self.log = log_of(files, record) if any(file.kind is Kind.LOG for file in self.files) else None

    def plain(self) -> dict[str, Any]:
        details, record = self.details, self.details.record
        origin = details.provenance
        return {
            **_plain_run(record, self.remarks),
            "newer": None if self.newer is None else self.newer.id,
            "former_cells": list(self.former),
            "steps": details.cell.spec.value("training.steps"),
            "metrics": dict(details.metrics),
            "settings": dict(details.cell.spec.plain),
            "varies": list(details.cell.varies),
            "sweeps": _plain_planners(details.cell),
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
            "former ids": ", ".join(self.former),
            "sweeps": ", ".join(one.sweep for one in cell.planners) or "none plans it any more",
            "generation": str(record.generation) if record.generation else "",
            "newer": f"run {self.newer.id}, {self.newer.state}, is a newer generation" if self.newer else "",
            "out of tables": record.invalidated or "",
            "tags": " ".join(self.remarks.tags_of_runs.get(record.id, ())),
            "notes": _in_words(self.remarks.of_runs.get(record.id, ())),
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
        yield from _facts(facts)
        if details.metrics:
            yield ""
            yield from _table(("metric", "value"), details.metrics.items())
        if details.evaluations:
            yield ""
            yield from _table(("evaluation", "scores"), map(_evaluation, details.evaluations))
        if details.attempts:
            yield ""
            head = ("attempt", "began (UTC)", "took", "steps", "outcome", "process", "changed")
            yield from _table(head, map(_attempt, details.attempts))
        yield ""
        yield from _settings(cell.written, cell.spec.plain, cell.varies)


class ShownCell(Shown):
    def __init__(self, database: Database, cell_id: str, conditions: Sequence[str]) -> None:
        from kdx.report.selection.searched import searched
        from kdx.store.searches import that_tried

        self.details = details = cell_details(database, cell_id)
        self.remarks = remarks(database)
        self.former = former_ids(database).get(cell_id, ())
        rows = chosen([_row(one, details.labels) for one in details.runs], conditions)
        self.runs = [row["record"] for row in rows]
        standing = standing_runs(self.runs)
        metric = Metric(details.spec.selection_metric, details.spec.selection_direction)
        self.searches = [one for each in that_tried(database, cell_id) if (one := searched(each, metric))]
        trials = {seed for one in self.searches for seed in one.search.tuning.seeds}
        scored = [one for one in standing if one.seed not in trials or one.test_score is not None]
        self.selected = best_seed(scored, details.spec.selection_direction)
        self.title = f"cell {cell_id}: {_named(details.labels, details.spec.task)}"
        self.drawn = [(f"run {one.id} · seed {seed_word(one.seed)}", one) for one in standing]
        self.metrics = _default_metrics([details.spec.plain])

    def plain(self) -> dict[str, Any]:
        from kdx.report.render.json import search_to_json

        details = self.details
        return {
            "cell": details.id,
            "former_cells": list(self.former),
            "settings": dict(details.spec.plain),
            "varies": list(details.varies),
            "sweeps": _plain_planners(details),
            "metric": details.spec.selection_metric,
            "selected": None if self.selected is None else self.selected.id,
            "runs": [_plain_run(one, self.remarks) for one in self.runs],
            "searches": [search_to_json(one) for one in self.searches],
        }

    def lines(self, db: str) -> Iterator[str]:
        from kdx.cli.shown_trials import trial_lines

        details = self.details
        yield sanitize(self.title)
        yield from _facts(
            {
                "former ids": ", ".join(self.former),
                "sweeps": ", ".join(one.sweep for one in details.planners) or "none plans it any more",
                "selected": ""
                if self.selected is None
                else f"run {self.selected.id}, by {details.spec.selection_metric}",
            }
        )
        yield ""
        yield from _runs(self.runs, details.spec.selection_metric, self.remarks)
        for one in self.searches:
            yield ""
            yield from trial_lines(one, details.id)
        yield ""
        yield from _settings(details.written, details.spec.plain, details.varies)


class ShownSweep(Shown):
    def __init__(self, database: Database, sweep_id: int, conditions: Sequence[str]) -> None:

        self.details = details = sweep_details(database, sweep_id)
        self.remarks = remarks(database)
        self.former = former_ids(database)
        rows = chosen([_row(run, cell.labels) for cell in details.cells for run in cell.runs], conditions)
        self.runs: dict[str, list[RunRecord]] = {}
        for row in rows:
            self.runs.setdefault(row["cell"], []).append(row["record"])
        self.cells = [cell for cell in details.cells if cell.id in self.runs or not conditions]
        self.title = f"sweep {details.name}"
        self.metrics = _default_metrics([cell.spec for cell in self.cells])
        self.best = {cell.id: self._best(cell) for cell in self.cells}
        self.drawn = [
            (f"run {run.id} · {_named(cell.labels, 'the cell')} · seed {seed_word(run.seed)}", run)
            for cell in self.cells
            if (run := self.best[cell.id] or self._begun(cell))
        ]

    def _begun(self, cell: PlannedCellDetails) -> RunRecord | None:
        return next((run for run in self.runs.get(cell.id, ()) if run.progress_step), None)

    def _best(self, cell: PlannedCellDetails) -> RunRecord | None:

        return best_seed(self.runs.get(cell.id, ()), Direction(cell.spec["select"]["direction"]))

    def plain(self) -> dict[str, Any]:
        details = self.details
        return {
            "sweep": details.name,
            "created": details.created,
            "planned": details.updated,
            "command": details.grid.get("command") or None,
            "grid": details.grid.get("file") or None,
            "description": details.grid.get("description", ""),
            "seeds": details.grid.get("seeds", []),
            "tags": list(self.remarks.tags_of_sweeps.get(details.id, ())),
            "notes": _plain_notes(self.remarks.of_sweeps.get(details.id, ())),
            "tables": [one.get("name", details.name) for one in details.grid.get("tables", [])],
            "evaluations": [one["name"] for one in details.grid.get("evaluations", [])],
            "varies": {field: list(values) for field, values in details.varies.items()},
            "cells": [
                {
                    "cell": cell.id,
                    "former_cells": list(self.former.get(cell.id, ())),
                    "choices": dict(cell.labels),
                    "metric": cell.spec["select"]["metric"],
                    "selected": best.id if (best := self.best[cell.id]) else None,
                    "runs": [_plain_run(one, self.remarks) for one in self.runs.get(cell.id, ())],
                }
                for cell in self.cells
            ],
        }

    def lines(self, db: str) -> Iterator[str]:
        details, grid = self.details, self.details.grid
        yield sanitize(self.title)
        states = Counter(run.state.value for its in self.runs.values() for run in its)
        seeds = grid.get("seeds", [])
        yield from _facts(
            {
                "about": grid.get("description", ""),
                "planned": f"{_time(details.updated)} UTC"
                + (f", by: {grid['command']}" if grid.get("command") else ""),
                "grid": grid.get("file", ""),
                "cells": f"{len(self.cells):,} with {len(seeds):,} seed{'' if len(seeds) == 1 else 's'} each",
                "runs": ", ".join(f"{count:,} {state}" for state, count in states.items()) or "none",
                "out of tables": self._out_of_tables(),
                "tags": " ".join(self.remarks.tags_of_sweeps.get(details.id, ())),
                "notes": _in_words(self.remarks.of_sweeps.get(details.id, ())),
                "tables": ", ".join(one.get("name", details.name) for one in grid.get("tables", [])),
                "evaluations": ", ".join(one["name"] for one in grid.get("evaluations", [])),
            }
        )
        yield ""
        axes = list(dict.fromkeys(axis for cell in self.cells for axis in cell.labels))
        head = ("cell", *axes, "completed", "run", "seed", "valid", "test")
        yield from _table(head, (self._line(cell, axes) for cell in self.cells[:MOST_CELLS]))
        if len(self.cells) > MOST_CELLS:
            more = f"kdx status {shlex.quote(details.name)}{in_database(db)}"
            yield f"  … and {len(self.cells) - MOST_CELLS:,} more cells; {sanitize(more)} lists all runs"
        if details.varies:
            yield ""
            yield "varies"
            yield from _facts({field: _values(values) for field, values in details.varies.items()})
        if details.cells:
            yield ""
            yield "the same in all cells"
            same = _without(details.cells[0].written, details.varies)
            yield from (f"  {sanitize_lines(line)}" for line in as_yaml(same).splitlines())

    def _out_of_tables(self) -> str:
        """The runs that somebody took out of tables, by the reason."""
        found: dict[str, list[int]] = {}
        for run in (run for its in self.runs.values() for run in its):
            if run.invalidated is not None:
                found.setdefault(run.invalidated, []).append(run.id)
        return "; ".join(f"run{'' if len(ids) == 1 else 's'} {_values(ids)} ({why})" for why, ids in found.items())

    def _line(self, cell: PlannedCellDetails, axes: Sequence[str]) -> tuple[Any, ...]:

        its = self.runs.get(cell.id, ())
        done = sum(run.state is RunState.COMPLETED for run in its)
        best = self.best[cell.id]
        choices = (cell.labels.get(axis, "–") for axis in axes)
        scores = (
            (best.id, seed_word(best.seed), _four(best.valid_score), _four(best.test_score)) if best else (None,) * 4
        )
        return cell.id[:8], *choices, f"{done} of {len(its)}", *scores


def _row(record: RunRecord, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "run": record.id,
        "cell": record.cell_id,
        "seed": record.seed,
        "state": record.state.value,
        "choices": labels,
        "record": record,
    }


def _plain_run(record: RunRecord, written: Remarks) -> dict[str, Any]:
    return {
        "run": record.id,
        "cell": record.cell_id,
        "seed": record.seed,
        "generation": record.generation,
        "state": record.state.value,
        "step": record.progress_step,
        "attempt": record.attempt,
        "valid_score": record.valid_score,
        "valid_step": record.valid_step,
        "test_score": record.test_score,
        "seconds": record.seconds,
        "error": record.error,
        "undertrained": record.undertrained,
        "invalidated": record.invalidated,
        "tags": list(written.tags_of_runs.get(record.id, ())),
        "notes": _plain_notes(written.of_runs.get(record.id, ())),
    }


def _plain_planners(cell: CellDetails) -> list[dict[str, Any]]:
    return [{"sweep": one.sweep, "choices": dict(one.labels)} for one in cell.planners]


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
    # The step of the checkpoint is not known for an attempt that ended before it began, or one of an older kdx.
    return one.first_step if one.resumed_step is None else one.resumed_step


def _attempt(one: AttemptRecord) -> tuple[Any, ...]:
    return (
        one.number,
        _time(one.started),
        "" if one.ended is None else in_words(one.ended - one.started),
        f"{_first_step(one):,}–{'' if one.last_step is None else f'{one.last_step:,}'}",
        one.outcome or "running",
        process_in_words(one.owner) or one.owner,
        one.changes or "",
    )


def _evaluation(one: EvaluationRecord) -> tuple[str, str]:
    settings = ", ".join(f"{name} {value}" for name, value in one.settings.items() if value is not None)
    return settings, one.error or ", ".join(f"{name} {value:.4g}" for name, value in one.metrics.items())


def _runs(runs: Iterable[RunRecord], metric: str, written: Remarks) -> Iterator[str]:
    head = ("run", "seed", "generation", "state", "step", "took", metric, metric.replace("valid/", "test/", 1), "")
    yield from _table(
        head,
        [
            (
                one.id,
                seed_word(one.seed),
                one.generation,
                one.state.value,
                one.progress_step,
                "" if one.seconds is None else in_words(one.seconds),
                _four(one.valid_score),
                _four(one.test_score),
                "; ".join(filter(None, _remarked(one, written))),
            )
            for one in runs
        ],
    )


def _remarked(record: RunRecord, written: Remarks) -> Iterator[str]:
    """What a list of runs says of one beside its numbers."""
    if record.invalidated is not None:
        yield f"out of tables: {record.invalidated}"
    yield record.error or ""
    if tags := written.tags_of_runs.get(record.id):
        yield f"tags: {' '.join(tags)}"
    if notes := written.of_runs.get(record.id):
        yield f"notes: {_in_words(notes)}"


def _in_words(notes: Sequence[NoteRecord]) -> str:
    return "; ".join(f"{' '.join(one.text.split())} ({_time(one.made)} UTC)" for one in notes)


def _plain_notes(notes: Sequence[NoteRecord]) -> list[dict[str, Any]]:
    return [{"made": one.made, "text": one.text} for one in notes]


def _scores(record: RunRecord, details: RunDetails) -> Iterator[str]:
    metric = details.cell.spec.selection_metric
    if record.valid_score is not None:
        yield f"{metric} {record.valid_score:.4g} at step {record.valid_step:,}"
    if record.test_score is not None:
        yield f"{metric.replace('valid/', 'test/', 1)} {record.test_score:.4g}"


def _place(environment: Mapping[str, Any] | None) -> str:
    """The machine and the libraries of the last attempt."""
    return ", ".join(f"{name} {value}" for name, value in (environment or {}).items() if value is not None)


def _settings(written: Mapping[str, Any], whole: Mapping[str, Any], varies: Sequence[str]) -> Iterator[str]:
    """A cell as YAML; what varies in its sweep comes first, and is there even at a value that is not hashed."""

    there = [field for field in varies if value(whole, field) is not None]
    yield f"settings, of which vary: {', '.join(there)}" if there else "settings"
    cell: dict[str, Any] = dict(written)
    for field in there:
        *sections, key = field.split(".")
        inner = cell
        for section in sections:
            inner[section] = dict(inner.get(section) or {})
            inner = inner[section]
        inner[key] = value(whole, field)
    yield from (f"  {sanitize_lines(line)}" for line in as_yaml(varying_first(cell, there)).splitlines())


def _without(cell: Mapping[str, Any], fields: Iterable[str], prefix: str = "") -> dict[str, Any]:
    """A cell less these dotted fields, and less what is empty then."""
    found = {}
    for key, its in cell.items():
        if isinstance(its, Mapping):
            if inner := _without(its, fields, f"{prefix}{key}."):
                found[key] = inner
        elif f"{prefix}{key}" not in fields:
            found[key] = its
    return found


def _values(values: Sequence[Any]) -> str:

    words = [word("", value) for value in values]
    if len(words) > MOST_VALUES:
        words[MOST_VALUES:] = [f"… ({len(words):,} values)"]
    return ", ".join(words)


def _named(labels: Mapping[str, str], task: str) -> str:
    return " · ".join(labels.values()) or task


def _facts(facts: Mapping[str, str]) -> Iterator[str]:
    """The facts that are there, one a line, under one another."""
    there = {name: sanitize(text) for name, text in facts.items() if text}
    wide = max(map(len, map(sanitize, there)), default=0)
    yield from (f"  {sanitize(name):{wide}}  {text}" for name, text in there.items())


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:

    yield from (f"  {line}" for line in to_text(head, list(rows)))


def _four(value: float | None) -> float | None:
    """Four digits of a score."""
    return None if value is None else float(f"{value:.4g}")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _default_metrics(specs: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys([*(str(spec["select"]["metric"]) for spec in specs), LOSS]))
