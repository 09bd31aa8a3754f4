"""The records that the database returns: frozen, detached values. Times are seconds since 1970, by its clock."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import fsum, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from kdx.vocabulary import Direction

if TYPE_CHECKING:
    from kdx.grid.plan import RunKey
    from kdx.grid.resolved_spec import ResolvedSpec  # pydantic, which help must not load


class RunState(StrEnum):
    """The state of a run. Those in `FINAL`, the last three, are outcomes that a run never leaves."""

    PENDING = "pending"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    DIVERGED = "diverged"
    PRUNED = "pruned"


class TrialState(StrEnum):
    """How a trial of a search ended; each of its runs has a state of its own."""

    COMPLETED = "completed"
    PRUNED = "pruned"
    """One of its runs was pruned."""
    FAILED = "failed"
    """One of its runs failed, diverged or was cancelled, or there is no such cell."""


class RemarkKind(StrEnum):
    """What somebody wrote on a sweep or on a run."""

    NOTE = "note"
    TAG = "tag"
    INVALIDATION = "invalidation"
    """Why tables leave the run out."""


LOST = "lost"
"""Outcome of an attempt whose process died without a word."""

LONGEST_LEASE = 3600.0
"""Longest lease that kdx gives, in seconds; a longer one means that the clock was set back."""

FINAL = frozenset({RunState.COMPLETED, RunState.DIVERGED, RunState.PRUNED})
ENDED = frozenset({*FINAL, RunState.FAILED, RunState.CANCELLED})
"""States at which nothing is to be done unless somebody asks for it."""

_MEMORY = re.compile(r"out of memory|OutOfMemoryError|MemoryError|can't allocate memory", re.IGNORECASE)


def folder_name(cell_id: str, seed: int, generation: int, search_id: str | None) -> str:
    """The name of a run's folder, the same beside every database."""
    return f"{cell_id}-{seed}-{generation}" + (f"-{search_id}" if search_id else "")


class RunRecord(NamedTuple):
    """One run: a cell with a seed, in a generation."""

    # A frozen dataclass would take several times as long to make, and a report reads thousands of records.

    id: int
    cell_id: str
    seed: int
    generation: int = 0
    """0 for the first run; each deliberate repetition of a finished run adds one."""
    state: RunState = RunState.PENDING
    attempt: int = 0
    """Number of the last claim, which fences writes of earlier ones; 0 if the run was never claimed."""
    owner: str | None = None
    """The process that claimed the run, see `kdx.sweep.lease_holder`."""
    lease_left: float | None = None
    """Seconds until the claim lapses, negative if it has lapsed; None unless the run is running."""
    progress_step: int = 0
    """Highest optimiser step that the database knows of."""
    stalls: int = 0
    """Number of attempts in a row that died without progress."""
    valid_score: float | None = None
    """Best value of the cell's selection metric."""
    valid_step: int | None = None
    """The step of that value."""
    test_score: float | None = None
    """The same metric on the test split, with those weights."""
    error: str | None = None
    """One line on why the run failed, diverged or was pruned, or lacked memory beside others."""
    seconds: float | None = None
    """Sum of the wall times of the ended attempts."""
    undertrained: str | None = None
    """One line if a completed run's final validation loss is not below that of the unigram distribution, else None."""
    checkpoint_step: int | None = None
    """Optimiser step of the newest checkpoint to resume from; None if there is none."""
    weights_sha256: str | None = None
    """Hash of the file with the tested weights; None if no file was written."""
    search_id: str | None = None
    """The search whose trial it is; None if sweeps plan it."""
    invalidated: str | None = None
    """One line on why tables leave the run out; None if they do not."""

    @property
    def key(self) -> "RunKey":
        """What makes it this run and no other, whatever its generation."""
        return self.cell_id, self.seed, self.search_id

    @property
    def out_of_memory(self) -> bool:
        """Whether the run failed for lack of memory, judging by its error."""
        return self.state is RunState.FAILED and _MEMORY.search(self.error or "") is not None

    @property
    def lacked_memory_beside_others(self) -> bool:
        """Whether it was interrupted for lack of memory on a GPU that it shared, so that it is to be alone next."""
        return self.state is RunState.INTERRUPTED and _MEMORY.search(self.error or "") is not None


CODE = "code"
"""Key of an environment that holds the modules of kdx on which a result depends, each with its hash."""


@dataclass(frozen=True)
class Provenance:
    """The data, code and environment of a run, or of an evaluation; all None before a run's first attempt."""

    data: str | None
    """Hash of the prepared data."""
    code: str | None
    """Hash of the code on which the run's result depends."""
    environment: Mapping[str, Any] | None
    """Library versions, processor, threads and the like of its last attempt, without its code."""
    definitions: Mapping[str, str] | None
    """Metric → its definition or signature, once it has ended."""
    changes: str | None = None
    """What changed during training, so that the run is not bit-exact; None for nothing."""
    facts: Mapping[str, Any] | None = None
    """Facts on the data and the evaluation, see `kdx.data.reading.data_facts`."""
    modules: Mapping[str, str] | None = None
    """Each module of kdx on which the result depends → its hash."""


@dataclass(frozen=True)
class CellRecord:
    """One cell as a sweep planned it."""

    id: str
    ordinal: int
    """Place in the sweep's plan, from 0."""
    labels: Mapping[str, str]
    """Axis → the choice in the grid's words."""
    spec: "ResolvedSpec"
    """The complete spec, with words that this kdx may not know."""
    sweeps: tuple[str, ...] = ()
    """Names of the sweeps that plan it, where several are joined (`kdx.report.selection.joined`)."""


@dataclass(frozen=True, slots=True)
class CurveRecord:
    """One metric of a run."""

    steps: "array[int]"
    """Optimiser steps, ascending."""
    values: "array[float]"
    """The recorded number at each step."""


@dataclass(frozen=True)
class AttemptRecord:
    """One try at a run."""

    number: int
    """The number of the attempt, from 1."""
    owner: str
    started: float
    ended: float | None
    """When the attempt or its lease ended; None if it has not ended."""
    outcome: str | None
    """The state in which it left the run, or `lost` if its process died without a word."""
    first_step: int
    """Highest step that was recorded before it."""
    last_step: int | None
    """The step that it reached."""
    traceback: str | None
    environment_id: str | None
    resumed_step: int | None
    """Step of the checkpoint from which it resumed; 0 if it started from the beginning."""
    changes: str | None
    """What differs from the conditions of that checkpoint."""
    peak_memory: int | None = None
    """Most bytes that it held: of its GPU, or, without one, resident; None if it has not ended."""


@dataclass(frozen=True)
class DocumentRecord:
    """What the test of a run, or an evaluation of it, measured by document."""

    unit: str
    """What a document is, in the singular: `article` or `block`."""
    sums: Mapping[str, Sequence[float]]
    """Quantity → its sum in each document, in the order of the text: `targets`, `nats`, and `right` where targets are
    counted that are predicted."""


@dataclass(frozen=True)
class EvaluationRecord:
    """A further reading of a completed run."""

    settings_id: str
    """The key among the evaluations of the run, see `kdx.grid.evaluations`."""
    settings: Mapping[str, Any]
    """Every setting."""
    made: float
    longest_context: int | None
    """The largest number of tokens that a token was predicted from; None if no stream was read."""
    definitions: Mapping[str, str] | None
    """Metric → its definition or signature."""
    error: str | None
    """One line: why it failed; None: it did not."""
    metrics: Mapping[str, float]
    """Metric, without a split → value."""
    documents: DocumentRecord | None = None
    """What it measured by document; None if its task divides no text."""
    provenance: Provenance | None = None
    """What it was computed from, and where; None where it failed."""


@dataclass(frozen=True)
class SweepSummary:
    """A named plan in a list of them."""

    id: int
    name: str
    created: float
    updated: float
    """When the sweep was last planned."""
    counts: Mapping[RunState, int]
    """State → planned runs whose newest generation is in it; states without runs are left out."""


@dataclass(frozen=True)
class PlanRecord:
    """A plan that a sweep has had."""

    id: int
    made: float
    """When the sweep was planned so."""
    grid: Mapping[str, Any]
    """`tables`, `seeds`, `command` and the other parts of the grid that concern no single cell."""
    sources: Mapping[str, str]
    """File → text of the grid and of the files that it extends, the grid first; empty if it did not come from a
    file."""
    cells: tuple[str, ...]
    """Ids of its cells."""


@dataclass(frozen=True)
class Inventory:
    """All runs of a database."""

    runs: tuple[RunRecord, ...]
    """Every generation of every run, planned or not."""
    planned: "frozenset[RunKey]"
    """Every run in the newest plan of some sweep, and of a trial of its searches."""


@dataclass(frozen=True)
class TrialRecord:
    """A trial of a search. How it ended follows from its runs."""

    number: int
    parameters: Mapping[str, Any]
    """Factor → its value."""
    attributes: Mapping[str, Any]
    """The sampler's notes on its draw."""
    cell_id: str | None
    """None if there is no such cell."""
    runs: tuple[RunRecord, ...] = ()
    """One for each tuning seed; none if there is no such cell."""

    @cached_property
    def state(self) -> TrialState | None:
        """How it ended; None if it has not."""
        states = {run.state for run in self.runs}
        if not states <= ENDED:
            return None
        scores = [run.valid_score for run in self.runs if run.state is RunState.COMPLETED]
        if not states or not states <= {RunState.COMPLETED, RunState.PRUNED}:
            return TrialState.FAILED
        if not all(score is not None and isfinite(score) for score in scores):
            return TrialState.FAILED
        return TrialState.PRUNED if RunState.PRUNED in states else TrialState.COMPLETED

    @cached_property
    def value(self) -> float | None:
        """Mean of the validation scores of its runs; of a pruned one, up to there; None unless it has some."""
        scores = [run.valid_score for run in self.runs if run.valid_score is not None]
        ended = self.state in (TrialState.COMPLETED, TrialState.PRUNED)
        return fsum(scores) / len(scores) if ended and scores else None

    @property
    def steps(self) -> int:
        """Optimiser steps of its runs."""
        return sum(run.progress_step for run in self.runs)


def best_trial(trials: Iterable[TrialRecord], direction: Direction) -> TrialRecord | None:
    """Return the completed trial with the best mean validation score, of equal ones the first; None if none is."""
    sign = 1.0 if direction is Direction.MIN else -1.0
    completed = [trial for trial in trials if trial.state is TrialState.COMPLETED]
    return min(completed, key=lambda trial: (sign * (trial.value or 0.0), trial.number), default=None)


class SearchRecord(NamedTuple):
    """A search that a sweep asks for."""

    id: str
    ordinal: int
    """Place of its cell in the plan, from 0."""
    labels: Mapping[str, str]
    """Axis → choice of the cell."""
    search: Mapping[str, Any]
    """The JSON that `kdx.grid.tuning.Search.of` reads, with the number of trials that the sweep asks for."""
    trials: tuple[TrialRecord, ...] = ()
    """Those that are recorded, in the order of their numbers."""

    @property
    def wanted(self) -> int:
        """Number of trials that the sweep asks for."""
        return int(self.search["tuning"]["trials"])

    @property
    def seeds(self) -> int:
        """Runs of a trial, one for each tuning seed."""
        return len(self.search["tuning"]["seeds"])

    @property
    def ended(self) -> Mapping[TrialState, int]:
        """How its trials ended → how many did."""
        return Counter(sorted(trial.state for trial in self.trials if trial.state))

    @property
    def left(self) -> int:
        """Trials that have not ended, drawn or not."""
        return self.wanted - sum(self.ended.values())


@dataclass(frozen=True)
class SweepRecord:
    """A named plan with all that a report needs."""

    id: int
    name: str
    created: float
    updated: float
    """When it was last planned."""
    grid: Mapping[str, Any]
    """`tables` and the other parts of the grid that concern no single cell."""
    cells: tuple[CellRecord, ...]
    runs: tuple[RunRecord, ...]
    """The newest generation of each planned run; where the newest is unfinished, the newest final one too, and where
    one is out of tables, all of them."""
    metrics: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """Run id → metric → value, for `test/…` and `model/…` metrics."""
    provenance: Mapping[int, Provenance] = field(default_factory=dict)
    """Run id → what it was computed from."""
    evaluations: Mapping[int, Mapping[str, EvaluationRecord]] = field(default_factory=dict)
    """Run id → settings' id → further reading."""
    documents: Mapping[int, DocumentRecord] = field(default_factory=dict)
    """Run id → what its test measured by document; runs of tasks that divide no text have none."""
    joins: "tuple[SweepRecord, ...]" = ()
    """The sweeps that it joins (`kdx.report.selection.joined`); none: it is one sweep."""
    searches: tuple[SearchRecord, ...] = ()
    """The searches that its newest plan asks for, with their trials, which are no runs of the sweep."""

    seeds_raised: tuple[int, ...] = ()
    """How many seeds it had under each plan that added some once a run had completed, the first plan's before them;
    empty where none did."""

    @property
    def distinct_cells(self) -> dict[str, CellRecord]:
        """Id → cell, in the order of the plan; of several choices with the same cell the first."""
        cells: dict[str, CellRecord] = {}
        for cell in self.cells:
            cells.setdefault(cell.id, cell)
        return cells

    @property
    def lacks_winners(self) -> bool:
        """Whether some search has no winner among the cells."""
        return not {search.ordinal for search in self.searches} <= {cell.ordinal for cell in self.cells}
