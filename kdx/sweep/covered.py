"""Finds what can be done within a budget: pure functions of decisions, of forecasts and of the time left.

A run is started only if it is expected to end within the time left. Runs are taken in the order of the plan, each by
the first free worker; a run that does not fit is passed over, and a shorter one after it may still fit.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kdx.grid.plan import PlannedCell, PlannedRun
from kdx.sweep.decide import Action, Decision


@dataclass(frozen=True)
class Covered:
    """The runs that a budget is enough for, and those that it is not."""

    to_do: tuple[PlannedRun, ...]
    """Runs that have not ended and that no process computes, in the order of the plan."""
    left_out: tuple[PlannedRun, ...] | None
    """The runs for which the budget is not enough; None if unknown."""
    seconds: float | None
    """Wall time until the other runs are done; None if unknown."""
    unknown: tuple[PlannedCell, ...] = ()
    """Cells with runs to do whose time is unknown."""
    evaluations: int = 0
    """Number of evaluations to make; they count as no time, since their time is not recorded."""


def covered(decisions: Iterable[Decision], seconds: Mapping[str, float | None], workers: int, left: float) -> Covered:
    """Return what will be done if n workers start now.

    Args:
        seconds: cell id → seconds of a whole run of the cell; None or missing if unknown.
        workers: at least 1.
        left: seconds until the budget is used.
    """
    decisions = tuple(decisions)
    to_do = [decision for decision in decisions if decision.trains]
    evaluations = evaluations_to_make(decisions)
    runs = tuple(decision.run for decision in to_do)
    unknown = {run.cell.id: run.cell for run in runs if seconds.get(run.cell.id) is None}
    if unknown:
        return Covered(runs, None, None, tuple(unknown.values()), evaluations)
    free = [0.0] * workers  # the time at which each worker is free; a heap
    left_out, last = [], 0.0
    for decision in to_do:
        ends = free[0] + (remaining(decision, seconds) or 0.0)
        # Workers become free later and later, so a run that does not fit now will never fit.
        if ends > left:
            left_out.append(decision.run)
            continue
        heapq.heapreplace(free, ends)
        last = max(last, ends)
    return Covered(runs, tuple(left_out), last, evaluations=evaluations)


def evaluations_to_make(decisions: Iterable[Decision]) -> int:
    """Return the number of evaluations to make, of completed runs and of runs to train."""
    makes = [decision for decision in decisions if decision.trains or decision.action is Action.EVALUATE]
    return sum(len(decision.to_make) for decision in makes)


def remaining(decision: Decision, seconds: Mapping[str, float | None]) -> float | None:
    """Return the seconds that a run still takes; None if unknown.

    A run that continues from a checkpoint, or from a shorter run, takes time in proportion to its remaining steps.
    """
    whole = seconds.get(decision.run.cell.id)
    if whole is None:
        return None
    done = decision.first_step / decision.run.cell.spec.training.steps
    return whole * (1.0 - min(done, 1.0))


def fits(decision: Decision, seconds: Mapping[str, float | None], left: float) -> bool:
    """Return whether a run may start: it would end in time, or its time is unknown and some time is left."""
    needed = remaining(decision, seconds)
    return left > 0 if needed is None else needed <= left


def missing_seeds(
    planned: Sequence[PlannedRun], left_out: Iterable[PlannedRun]
) -> list[tuple[tuple[int, ...], list[PlannedCell]]]:
    """Return what a plan lacks without some of its runs: seeds, and the cells that lack them.

    Seeds are in the order of the plan, and empty for cells without any run. Groups with most cells come first, cells
    without any run last.
    """
    cells = {run.cell.id: run.cell for run in planned}
    seeds: dict[str, list[int]] = {cell_id: [] for cell_id in cells}
    missing: dict[str, list[int]] = {cell_id: [] for cell_id in cells}
    gone = {run.key for run in left_out}
    for run in planned:
        seeds[run.cell.id].append(run.seed)
        missing[run.cell.id] += [run.seed] if run.key in gone else []
    groups: dict[tuple[int, ...], list[PlannedCell]] = {}
    for cell_id, cell in cells.items():
        if missing[cell_id]:
            all_missing = missing[cell_id] == seeds[cell_id]
            groups.setdefault(() if all_missing else tuple(missing[cell_id]), []).append(cell)
    return sorted(groups.items(), key=lambda group: (not group[0], -len(group[1])))
