"""What the database hands out: frozen, detached values. Times are seconds since 1970, from the database's clock."""

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kdx.grid.resolved_spec import ResolvedSpec  # pydantic, which help must not load


class RunState(StrEnum):
    """Where a run stands. The last three of `FINAL` are outcomes: a run never leaves them."""

    PENDING = "pending"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    DIVERGED = "diverged"
    PRUNED = "pruned"


LOST = "lost"
"""Outcome of an attempt whose process died without a word."""

LONGEST_LEASE = 3600.0
"""Seconds. No kdx gives a longer one; a clock that was set back by more makes one of it."""

FINAL = frozenset({RunState.COMPLETED, RunState.DIVERGED, RunState.PRUNED})

_MEMORY = re.compile(r"out of memory|OutOfMemoryError|MemoryError|can't allocate memory", re.IGNORECASE)


class RunRecord(NamedTuple):
    """One run: a cell with a seed, in a generation."""

    # No dataclass: a frozen one takes several times as long to make, and a report reads thousands.

    id: int
    cell_id: str
    seed: int
    generation: int
    """0 for the first; each deliberate repetition of a finished run adds one."""
    state: RunState
    attempt: int
    """Number of the last claim; it fences writes of earlier ones. 0: never claimed."""
    owner: str | None
    """Who claimed it: see `kdx.sweep.lease_holder`."""
    lease_left: float | None
    """Seconds until the claim lapses, negative when it has; None unless running."""
    progress_step: int
    """Last optimiser step known to the database."""
    stalls: int
    """Attempts in a row that died without coming further."""
    valid_score: float | None
    """Best value of the cell's selection metric."""
    valid_step: int | None
    """The step of that value."""
    test_score: float | None
    """The same metric on the test split, with those weights."""
    error: str | None
    """One line: why it failed, diverged or was pruned."""
    seconds: float | None
    """Wall time of the attempts that ended, summed."""
    undertrained: str | None = None
    """One line, of a completed run: its final validation loss is not below the unigram distribution's; None: it is."""
    checkpoint_step: int | None = None
    """Optimiser step of the newest checkpoint to go on from; None: none was made."""
    weights_sha256: str | None = None
    """Of the file with the weights that were tested; None: none was written, or an older kdx wrote it."""

    @property
    def out_of_memory(self) -> bool:
        """Whether it failed because memory did not suffice, as far as its error tells."""
        return self.state is RunState.FAILED and _MEMORY.search(self.error or "") is not None


@dataclass(frozen=True)
class Provenance:
    """What a run was computed from, and where; all None before its first attempt."""

    data: str | None
    """Hash of the prepared data."""
    code: str | None
    """Hash of the code that decides what a run computes."""
    environment: Mapping[str, Any] | None
    """Library versions, processor, threads and the like, of its last attempt; its code is apart."""
    definitions: Mapping[str, str] | None
    """Metric → its definition or signature, once it has ended."""
    changes: str | None = None
    """What changed while it was computed, so that it is not bit-exact; None: nothing."""
    facts: Mapping[str, Any] | None = None
    """What the prepared data and the evaluation were, see `kdx.data.reading.data_facts`; None: an older kdx ran it."""
    modules: Mapping[str, str] | None = None
    """Module of kdx → hash of it, of all that decide what the run computes; None: an older kdx ran it."""


@dataclass(frozen=True)
class CellRecord:
    """One cell as a sweep planned it."""

    id: str
    ordinal: int
    """Place in the sweep's plan, from 0."""
    labels: Mapping[str, str]
    """Axis → the choice as the grid words it."""
    spec: "ResolvedSpec"
    """Every field of it, whatever words it holds."""


@dataclass(frozen=True, slots=True)
class CurveRecord:
    """One metric of a run."""

    steps: "array[int]"
    """Optimiser steps, ascending."""
    values: "array[float]"
    """The number at each step, as it was recorded."""


@dataclass(frozen=True)
class AttemptRecord:
    """One try at a run."""

    number: int
    """From 1."""
    owner: str
    started: float
    ended: float | None
    """When it ended, or when its lease did; None: not yet."""
    outcome: str | None
    """The state that it left the run in, or `lost`: its process died without a word."""
    first_step: int
    """Highest step recorded before it."""
    last_step: int | None
    """Step that it reached."""
    traceback: str | None
    environment_id: str | None
    resumed_step: int | None
    """Of the checkpoint that it went on from; 0: it began anew."""
    changes: str | None
    """What was other than under that checkpoint."""


@dataclass(frozen=True)
class EvaluationRecord:
    """A further reading of a completed run."""

    settings_id: str
    """What tells it from the other evaluations of the run, see `kdx.grid.evaluations`."""
    settings: Mapping[str, Any]
    """Every setting."""
    made: float
    longest_context: int | None
    """Tokens that one is predicted from at most; None: no stream was read."""
    definitions: Mapping[str, str] | None
    """Metric → its definition or signature."""
    error: str | None
    """One line: why it failed; None: it did not."""
    metrics: Mapping[str, float]
    """Metric, without a split → value."""


@dataclass(frozen=True)
class SweepSummary:
    """A named plan in a list of them."""

    id: int
    name: str
    created: float
    updated: float
    """When it was last planned."""
    counts: Mapping[RunState, int]
    """State → planned runs whose newest generation is in it; states without runs are left out."""


@dataclass(frozen=True)
class Inventory:
    """All runs that there are."""

    runs: tuple[RunRecord, ...]
    """Every generation of every run, whether it is planned or not."""
    planned: frozenset[tuple[str, int]]
    """(cell id, seed) of what the newest plan of some sweep has."""


@dataclass(frozen=True)
class SweepRecord:
    """A named plan, with all that a report needs of it."""

    id: int
    name: str
    created: float
    grid: Mapping[str, Any]
    """`tables` and the other parts of the grid that concern no single cell."""
    cells: tuple[CellRecord, ...]
    runs: tuple[RunRecord, ...]
    """The newest generation of each planned run; where the newest is unfinished, the newest final one too."""
    metrics: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """Run id → metric → value, for `test/…` and `model/…` metrics."""
    provenance: Mapping[int, Provenance] = field(default_factory=dict)
    """Run id → what it was computed from."""
    evaluations: Mapping[int, Mapping[str, EvaluationRecord]] = field(default_factory=dict)
    """Run id → settings' id → further reading."""
