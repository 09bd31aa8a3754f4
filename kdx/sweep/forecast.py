"""Forecasts what runs will cost and how long a sweep will still take, from the cost of completed runs."""

import heapq
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from statistics import median
from typing import Any

from kdx.store.status import CellTime, RunCost, WorkRecord
from kdx.words import table

CHECKED = 20
"""Number of the latest completed runs whose forecasts are compared with their real time."""


class Basis(StrEnum):
    """The basis of a forecast."""

    CELL = "runs of this cell"
    COST = "runs that differ in no cost"
    SIZE = "runs of the same sizes"
    PROBE = "a probe"


@dataclass(frozen=True)
class Forecast:
    """The expected cost of a run of a cell."""

    seconds: float
    """Wall time."""
    memory: int | None
    """The most bytes that a run uses; None if unknown."""
    parameters: int | None
    """Number of trained parameters; None if unknown."""
    basis: Basis
    runs: int
    """Number of completed runs behind the forecast."""


@dataclass
class _Sum:
    """The costs of similar runs."""

    runs: int = 0
    seconds_per_step: float = 0.0
    memory: int | None = None
    parameters: set[int | None] = field(default_factory=set)

    def add(self, run: RunCost) -> None:
        self.runs += 1
        self.seconds_per_step += run.seconds / run.steps
        if run.peak_memory is not None:
            self.memory = max(self.memory or 0, run.peak_memory)
        self.parameters.add(run.parameters)


class Forecaster:
    """Forecasts the mean cost of completed runs of the same cell, or else of similar cells."""

    def __init__(self, runs: Iterable[RunCost]) -> None:
        """Take completed runs in the order in which they ended."""
        self._sums: dict[tuple[Basis, str], _Sum] = {}
        self.errors: tuple[float, ...] = ()
        """|expected / real − 1| of the time of the latest runs, forecast from what was known before each ended."""
        keys: dict[str, tuple[str, str]] = {}
        errors = []
        for run in runs:
            if run.cell_id not in keys:
                keys[run.cell_id] = cost_keys(run.cell)
            expected = self._expected(run.cell_id, keys[run.cell_id], run.steps)
            if expected is not None:
                errors.append(abs(expected.seconds / run.seconds - 1))
            for key in _named(run.cell_id, keys[run.cell_id]):
                self._sums.setdefault(key, _Sum()).add(run)
        self.errors = tuple(errors[-CHECKED:])

    def forecast(self, cell_id: str, cell: Mapping[str, Any]) -> Forecast | None:
        """Return the expected cost of a run of a resolved cell; None if no similar run has completed."""
        return self._expected(cell_id, cost_keys(cell), cell["training"]["steps"])

    def _expected(self, cell_id: str, keys: tuple[str, str], steps: int) -> Forecast | None:
        for key in _named(cell_id, keys):
            if (total := self._sums.get(key)) is not None:
                same = len(total.parameters) == 1 and key[0] is not Basis.SIZE
                parameters = next(iter(total.parameters)) if same else None
                seconds = steps * total.seconds_per_step / total.runs
                return Forecast(seconds, total.memory, parameters, key[0], total.runs)
        return None


_SIZES = ("data", "model", "training")
"""Sections of a cell with the sizes on which the cost of a step depends."""


@cache
def _free_factors() -> frozenset[str]:
    """Return the factors on which no cost depends."""
    return frozenset(factor for factor, facts in table.factors().items() if not facts.costs)


def cost_keys(cell: Mapping[str, Any]) -> tuple[str, str]:
    """Return two keys of a resolved cell.

    Cells with the same first key differ in nothing on which the cost of a step depends. Cells with the same second key
    have the same task, text, sizes and batches, but may have other kernels, positions and the like.
    """
    sizes: dict[str, Any] = {
        section: {name: value for name, value in cell[section].items() if f"{section}.{name}" not in _free_factors()}
        for section in _SIZES
        if isinstance(cell.get(section), dict)
    }
    sizes |= {name: cell.get(name) for name in ("task", "evaluation")}
    choices = {name: value for name, value in cell.items() if name not in (*sizes, "select", "components")}
    return json.dumps([sizes, choices], sort_keys=True), json.dumps(sizes, sort_keys=True)


def in_words(seconds: float) -> str:
    """Return a length of time in the largest unit that leaves two digits: `49 s`, `12 min`, `31 h`, `8 days`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 100 * 3600 else f"{seconds / 86400:.0f} days"


def makespan(seconds: Iterable[float], at_a_time: int) -> float:
    """Return the wall time of runs that start in this order, each as soon as one of `at_a_time` places is free."""
    free = [0.0] * at_a_time
    for run in seconds:
        heapq.heapreplace(free, free[0] + run)
    return max(free)


def typical_error(errors: Collection[float]) -> str | None:
    """Return how far forecasts were off, as a phrase; None without forecasts."""
    if not errors:
        return None
    last = f"the last {len(errors)} runs" if len(errors) > 1 else "the last run"
    if len(errors) == 1:
        return f"off by {max(errors):.0%} for {last}"
    return f"off by {median(errors):.0%} for {last} (median; at most {max(errors):.0%})"


def _named(cell_id: str, keys: tuple[str, str]) -> tuple[tuple[Basis, str], ...]:
    return (Basis.CELL, cell_id), (Basis.COST, keys[0]), (Basis.SIZE, keys[1])


def seconds_left(cells: Collection[CellTime], working: Collection[WorkRecord]) -> float | None:
    """Return the wall time until the last run of a sweep ends, if the number of processes stays as it is.

    Without any process, it is the time that one would take. The progress of an active run is estimated from its elapsed
    time; one that takes longer than earlier runs counts as done.

    Args:
        cells: the cells of one sweep that have runs to do.
        working: the active runs of the sweep.

    Returns:
        None if no run of the sweep has completed yet.
    """
    total = 0.0
    mean = {cell.cell_id: cell.seconds for cell in cells}
    for cell in cells:
        if cell.seconds is None:
            return None
        total += cell.left * cell.seconds
    total -= sum(min(run.running, mean.get(run.cell_id) or 0.0) for run in working)
    return total / max(len(working), 1)
