"""Traces one number of a table: its runs, what they were computed from, and a grid that computes them again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from kdx.errors import KdxError, did_you_mean
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.table_layout import Address
from kdx.report.selection.cells import Cell
from kdx.report.sheets.scores import column_headers
from kdx.report.table.layout import Layout
from kdx.report.wording import LEVELS
from kdx.report.writers.json import plain, taken
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize
from kdx.store.records import AttemptRecord, CellRecord, Provenance, RunRecord, SweepRecord


@dataclass(frozen=True)
class TracedRun:
    """The run that stands for one seed."""

    record: RunRecord
    score: float | None
    """Its score in the cell, see `kdx.report.selection.cells.Seed`."""
    selected: bool
    provenance: Provenance
    attempts: tuple[AttemptRecord, ...]


@dataclass(frozen=True)
class Trace:
    """One place of a table with everything that is recorded about it."""

    planned: Mapping[str, str]
    """Name of each sweep that plans the cell → the command that planned the sweep; empty where it was not recorded."""
    table: str
    row: str
    """The header of the row, its words joined by `kdx.report.wording.LEVELS`."""
    column: str
    cell: Cell
    record: CellRecord
    runs: tuple[TracedRun, ...]
    """One run for each seed, from the lowest."""
    evaluation: ResolvedEvaluation | None = None
    """The evaluation of the runs that gave the scores; None: their tests."""

    @property
    def sweep(self) -> str:
        """The name of the sweep, or of several."""
        return ", ".join(self.planned)

    @property
    def scored(self) -> str:
        """The name of the scores, such as `test/bleu`, or `bleu of evaluation longer`."""
        recorded = self.cell.metric.recorded
        if self.evaluation is None:
            return recorded
        return f"{recorded.removeprefix('test/')} of evaluation {self.evaluation.request.name}"

    @property
    def grid(self) -> str:
        """A grid of this cell alone, with its seeds, and with the evaluation where one gave the scores."""
        about = {
            "name": f"{self.sweep} again"[:100],
            "description": sanitize(f"{self.table}: {self.row}, {self.column}"),
            "seeds": [seed.seed for seed in self.cell.seeds],
        }
        request = self.evaluation and self.evaluation.request
        evaluations = {"evaluations": {request.name: request.settings.plain}} if request else {}
        return "".join(as_yaml(part) for part in (about, self.record.spec.plain, evaluations) if part)

    @property
    def origins(self) -> list[tuple[Provenance, list[int]]]:
        """Each different origin of the started runs, with the ids of its runs."""
        origins: list[tuple[Provenance, list[int]]] = []
        for run in self.runs:
            same = next((runs for origin, runs in origins if origin == run.provenance), None)
            if same is not None:
                same.append(run.record.id)
            elif run.provenance.code:
                origins.append((run.provenance, [run.record.id]))
        return origins


def find(layout: Layout, row: str, column: str | None) -> Address:
    """The place under these headers.

    Args:
        row: a header as it is printed, levels joined by ` / `; or levels or words of it that no other header has.
        column: likewise; arrows may be left out. None for the only column.

    Raises:
        KdxError: no header has these words, or several have, or the grid plans nothing there.
    """
    at = _index(layout, "row", rows(layout), row), _index(layout, "column", columns(layout), column)
    if at not in layout.places:
        raise KdxError(
            f"table `{layout.name}`: nothing stands at {rows(layout)[at[0]]}, {columns(layout)[at[1]]}",
            hint="the grid plans no such cell, or its task has no such metric",
        )
    return at


def rows(layout: Layout) -> list[str]:
    """The header of each row, as it is printed."""
    return [sanitize(LEVELS.join(words)) for words in layout.rows]


def columns(layout: Layout) -> list[str]:
    """The header of each column, as it is printed."""
    return [sanitize(LEVELS.join(words)) for words in column_headers(layout)]


def trace(sweep: SweepRecord, layout: Layout, at: Address, attempts: Mapping[int, tuple[AttemptRecord, ...]]) -> Trace:
    """Trace a place.

    Args:
        attempts: run id → every try at it.
    """
    cell = layout.places[at]
    records = {run.id: run for run in sweep.runs}
    record = next(record for record in sweep.cells if record.id == layout.trained(cell))
    commands = {part.name: str(part.grid.get("command", "")) for part in (sweep.joins or (sweep,))}
    return Trace(
        planned={name: commands[name] for name in record.sweeps or commands},
        table=layout.name,
        row=rows(layout)[at[0]],
        column=columns(layout)[at[1]],
        cell=cell,
        record=record,
        runs=tuple(
            TracedRun(
                record=records[seed.run_id],
                score=seed.score,
                selected=seed.run_id == cell.run_id,
                provenance=sweep.provenance.get(seed.run_id, Provenance(None, None, None, None)),
                attempts=attempts.get(seed.run_id, ()),
            )
            for seed in cell.seeds
        ),
        evaluation=layout.evaluations[cell.id].evaluation if cell.id in layout.evaluations else None,
    )


def to_json(trace: Trace) -> dict[str, Any]:
    """The trace as plain values, in full precision."""
    cell, evaluation = trace.cell, trace.evaluation
    runs = [
        {
            "run": run.record.id,
            **taken(run.record, "seed generation state"),
            "selected": run.selected,
            "validation": run.record.valid_score,
            "validation_step": run.record.valid_step,
            "score": run.score,
            **taken(run.record, "seconds error invalidated"),
            "data": run.provenance.data,
            "data_facts": run.provenance.facts,
            **taken(run.provenance, "code environment definitions"),
            "attempts": plain(run.attempts),
        }
        for run in trace.runs
    ]
    return {
        "sweep": trace.sweep,
        "command": next(iter(trace.planned.values())) or None,
        "sweeps": [{"sweep": name, "command": command or None} for name, command in trace.planned.items()],
        **taken(trace, "table row column"),
        **taken(cell, "value shown state"),
        "metric": cell.metric.recorded,
        "selected_by": cell.selected_by.name,
        "run": cell.run_id,
        "seed": cell.seed,
        "cell": trace.record.id,
        "labels": dict(trace.record.labels),
        "evaluation": evaluation and {"name": evaluation.request.name, "settings": dict(evaluation.settings)},
        "spec": dict(trace.record.spec.plain),
        "runs": runs,
        "grid": trace.grid,
    }


def _index(layout: Layout, side: str, headers: Sequence[str], name: str | None) -> int:
    """The index of the header that fits; raises KdxError unless exactly one does."""
    if name is None:
        if len(headers) == 1:
            return 0
        raise KdxError(f"table `{layout.name}` has {len(headers)} {side}s", allowed=headers, hint=f"name a {side}")
    parts = _parts(name)
    ways: tuple[Callable[[str], bool], ...] = (
        lambda header: header == name,
        lambda header: _parts(header) == parts,
        lambda header: parts <= _parts(header) | _words(header),
        lambda header: _bare_words(name) <= _bare_words(header),
    )
    fitting = ([index for index, header in enumerate(headers) if fits(header)] for fits in ways)
    matches: list[int] = next(filter(None, fitting), [])
    if len(matches) == 1:
        return matches[0]
    if matches:
        several = [headers[index] for index in matches]
        raise KdxError(f"table `{layout.name}`: several {side}s are `{name}`", allowed=several, hint="name one in full")
    hint = did_you_mean(name, headers) or _nearest(name, headers)
    raise KdxError(f"table `{layout.name}`: there is no {side} `{name}`", allowed=headers, hint=hint)


def _parts(header: str) -> set[str]:
    """The levels of a header, without case and arrows."""
    return {sanitize(level).casefold().rstrip(" ↑↓") for level in header.split(LEVELS)} - {""}


def _words(header: str) -> set[str]:
    return {word for part in _parts(header) for word in part.split()}


def _bare_words(header: str) -> set[str]:
    """Its words without punctuation around them."""
    return {word.strip(".,;:()[]") for word in _words(header)} - {""}


def _nearest(name: str, headers: Sequence[str]) -> str | None:
    """A hint with the header that has most of the words that are meant; None where no word is like one of theirs."""
    known = {word for header in headers for word in _bare_words(header)}
    meant = {near for word in _bare_words(name) for near in get_close_matches(word, known, n=1)}
    nearest = max(headers, key=lambda header: len(meant & _bare_words(header)), default="")
    return f"did you mean `{nearest}`?" if meant else None
