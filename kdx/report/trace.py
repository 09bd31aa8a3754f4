"""Traces one number of a table: its runs, what they were computed from, and a grid that computes them again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    """The reading of the runs that gave the scores; None: their tests."""

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
        return f"{recorded.removeprefix('test/')} of evaluation {self.evaluation.asked.name}"

    @property
    def spec(self) -> dict[str, Any]:
        """Every field of the resolved cell."""
        return dict(self.record.spec.plain)

    @property
    def grid(self) -> str:
        """A grid of this cell alone, with its seeds, and with the evaluation where one gave the scores."""
        about = {
            "name": f"{self.sweep} again"[:100],
            "description": sanitize(f"{self.table}: {self.row}, {self.column}"),
            "seeds": [_written(one.seed) for one in self.cell.seeds],
        }
        asked = self.evaluation and self.evaluation.asked
        evaluations = {"evaluations": {asked.name: asked.settings.asked}} if asked else {}
        return "".join(as_yaml(part) for part in (about, self.spec, evaluations) if part)


def _written(seed: int) -> int | str:
    """A seed as a grid has it."""
    word = str(seed)
    return seed if word == str(seed) else word


def find(layout: Layout, row: str, column: str | None) -> Address:
    """The place under these headers.

    Args:
        row: a header as it is printed, levels joined by ` / `; or some of its words, or parts of them, if no other
            header has them.
        column: likewise; arrows may be left out. None for the only column.

    Raises:
        KdxError: no header has these words, or several have, or the grid plans nothing there.
    """
    at = _one(layout, "row", rows(layout), row), _one(layout, "column", columns(layout), column)
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
    """Traces a place.

    Args:
        attempts: run id → every try at it.
    """
    cell = layout.places[at]
    records = {run.id: run for run in sweep.runs}
    nothing = Provenance(None, None, None, None)
    record = next(record for record in sweep.cells if record.id == layout.trained(cell))
    commands = {one.name: str(one.grid.get("command", "")) for one in (sweep.joins or (sweep,))}
    return Trace(
        planned={name: commands[name] for name in record.sweeps or commands},
        table=layout.name,
        row=rows(layout)[at[0]],
        column=columns(layout)[at[1]],
        cell=cell,
        record=record,
        runs=tuple(
            TracedRun(
                record=records[one.run_id],
                score=one.score,
                selected=one.run_id == cell.run_id,
                provenance=sweep.provenance.get(one.run_id, nothing),
                attempts=attempts.get(one.run_id, ()),
            )
            for one in cell.seeds
        ),
        evaluation=layout.evaluations[cell.id].evaluation if cell.id in layout.evaluations else None,
    )


def to_json(trace: Trace) -> dict[str, Any]:
    """The trace as plain values, in full precision."""
    cell, evaluation = trace.cell, trace.evaluation
    runs = [
        {
            "run": one.record.id,
            **taken(one.record, "seed generation state"),
            "selected": one.selected,
            "validation": one.record.valid_score,
            "validation_step": one.record.valid_step,
            "score": one.score,
            **taken(one.record, "seconds error invalidated"),
            "data": one.provenance.data,
            "data_facts": one.provenance.facts,
            **taken(one.provenance, "code environment definitions"),
            "attempts": plain(one.attempts),
        }
        for one in trace.runs
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
        "evaluation": evaluation and {"name": evaluation.asked.name, "settings": dict(evaluation.settings)},
        "spec": trace.spec,
        "runs": runs,
        "grid": trace.grid,
    }


def origins(trace: Trace) -> Iterator[tuple[Provenance, list[int]]]:
    """Each different origin of the started runs, with the ids of its runs."""
    found: list[tuple[Provenance, list[int]]] = []
    for one in trace.runs:
        same = [runs for origin, runs in found if origin == one.provenance]
        if same:
            same[0].append(one.record.id)
        elif one.provenance.code:
            found.append((one.provenance, [one.record.id]))
    yield from found


def _one(layout: Layout, side: str, headers: Sequence[str], asked: str | None) -> int:
    """The index of the header that fits; raises KdxError unless exactly one does."""
    if asked is None:
        if len(headers) == 1:
            return 0
        raise KdxError(f"table `{layout.name}` has {len(headers)} {side}s", allowed=headers, hint=f"name a {side}")
    wanted = _words(asked)
    fits: tuple[Callable[[str], bool], ...] = (
        lambda header: header == asked,
        lambda header: wanted <= _words(header),
        lambda header: all(any(part in word for word in _words(header)) for part in wanted),
    )
    found = next(filter(None, ([i for i, header in enumerate(headers) if fit(header)] for fit in fits)), [])
    if len(found) == 1:
        return found[0]
    if found:
        many = [headers[index] for index in found]
        raise KdxError(f"table `{layout.name}`: several {side}s are `{asked}`", allowed=many, hint="name one in full")
    hint = did_you_mean(asked, headers)
    raise KdxError(f"table `{layout.name}`: there is no {side} `{asked}`", allowed=headers, hint=hint)


def _words(header: str) -> set[str]:
    """The words of each level, without case and arrows."""
    return {sanitize(word).casefold().rstrip(" ↑↓") for word in header.split(LEVELS)} - {""}
