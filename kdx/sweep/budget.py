"""What of a sweep can be done within a budget: pure functions of decisions, of predictions and of the time left.

A run is begun only if the prediction of its time fits into what is left. Runs are taken in the order of the plan, each
by the first worker that is free; one that does not fit is passed over, and a shorter one after it may still fit.
"""

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kdx.errors import KdxError
from kdx.grid.plan import PlannedCell, PlannedRun
from kdx.sweep.decide import Action, Decision

ALLOWED = (
    "a number above 0 with its unit: wall time such as 30s, 90m or 6h; 40gpuh or 40coreh, hours times runs at a time"
)
LONGEST = 100_000
"""Hours."""
_BUDGET = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(s|m|h|gpuh|coreh)")
_IN_AN_HOUR = {"s": 3600, "m": 60}


@dataclass(frozen=True)
class Budget:
    """How long a command may work."""

    text: str
    """As the user typed it."""
    hours: float
    unit: str
    """`s`, `m` or `h`, of wall time; `gpuh` or `coreh`, which as many runs spend together as go at a time."""
    begun: float
    """When the command began, by the monotonic clock, in seconds."""

    def deadline(self, workers: int) -> float:
        """When the command is to end, by the same clock.

        Args:
            workers: runs that go at a time; each has a GPU, or a core.
        """
        return self.begun + 3600 * self.hours / (workers if self.unit in ("gpuh", "coreh") else 1)


def read_budget(text: str, begun: float) -> Budget:
    """Parses `--budget`.

    Raises:
        KdxError: it is no budget, or nothing can be done within it.
    """
    found = _BUDGET.fullmatch(text)
    hours = float(found[1]) / _IN_AN_HOUR.get(found[2], 1) if found else 0.0
    if found is None or not 0 < hours <= LONGEST:
        more = f", at most {LONGEST:,} hours" if hours else ""
        raise KdxError(f"--budget `{text}`", allowed=f"{ALLOWED}{more}")
    return Budget(text, hours, found[2], begun)


def read_wall_time(option: str, text: str, *, least: float = 0.0) -> float:
    """Parses an option that is a length of wall time, such as `90m`; seconds.

    Args:
        option: its name, for the message.
        least: smallest number of seconds.

    Raises:
        KdxError: it is no such length.
    """
    found = _BUDGET.fullmatch(text)
    seconds = float(found[1]) * 3600 / _IN_AN_HOUR.get(found[2], 1) if found else -1.0
    if found is None or found[2] not in ("s", "m", "h") or not least <= seconds <= 3600 * LONGEST:
        above = f"{least:g}s or more"
        raise KdxError(f"{option} `{text}`", allowed=f"wall time such as 30s, 90m or 6h; {above}, at most {LONGEST:,}h")
    return seconds


@dataclass(frozen=True)
class Covered:
    """What a budget is enough for."""

    to_do: tuple[PlannedRun, ...]
    """The runs that are not over and that nobody works at, in the order of the plan."""
    left_out: tuple[PlannedRun, ...] | None
    """Those of them for which the budget is not enough; None: nobody knows."""
    seconds: float | None
    """Wall time until the others are done; None: nobody knows."""
    unknown: tuple[PlannedCell, ...] = ()
    """Cells with runs to do whose time nobody knows."""
    evaluations: int = 0
    """Evaluations to make, which count as no time: how long one takes is recorded nowhere."""


def covered(decisions: Iterable[Decision], seconds: Mapping[str, float | None], workers: int, left: float) -> Covered:
    """What is done if as many workers as these begin now.

    Args:
        seconds: cell id → how long a whole run of the cell takes; None, or missing: nobody knows.
        workers: at least 1.
        left: seconds until the budget is used.
    """
    decisions = tuple(decisions)
    to_do = [one for one in decisions if one.action in (Action.START, Action.CONTINUE)]
    evaluations = evaluations_to_make(decisions)
    runs = tuple(one.run for one in to_do)
    unknown = {one.run.cell.id: one.run.cell for one in to_do if seconds.get(one.run.cell.id) is None}
    if unknown:
        return Covered(runs, None, None, tuple(unknown.values()), evaluations)
    free = [0.0] * workers  # when each worker has done what it began; a heap
    left_out, last = [], 0.0
    for one in to_do:
        ends = free[0] + (remaining(one, seconds) or 0.0)
        # Times at which workers are free only grow, so what does not fit now fits never.
        if ends > left:
            left_out.append(one.run)
            continue
        heapq.heapreplace(free, ends)
        last = max(last, ends)
    return Covered(runs, tuple(left_out), last, evaluations=evaluations)


def evaluations_to_make(decisions: Iterable[Decision]) -> int:
    """How many evaluations are to be made of completed runs, and of those that are to be trained."""
    makes = (Action.START, Action.CONTINUE, Action.EVALUATE)
    return sum(len(one.missing) for one in decisions if one.action in makes)


def remaining(decision: Decision, seconds: Mapping[str, float | None]) -> float | None:
    """How long a run still takes, in seconds; None: nobody knows.

    A run that goes on from a checkpoint takes the share of the steps that is left.
    """
    whole = seconds.get(decision.run.cell.id)
    if whole is None:
        return None
    if decision.action is not Action.CONTINUE or decision.record is None:
        return whole
    done = (decision.record.checkpoint_step or 0) / decision.run.cell.spec.training.steps
    return whole * (1.0 - min(done, 1.0))


def fits(decision: Decision, seconds: Mapping[str, float | None], left: float) -> bool:
    """Whether a run may begin: it would be done in time, or nobody knows how long it takes and there is some time."""
    needed = remaining(decision, seconds)
    return left > 0 if needed is None else needed <= left


@dataclass(frozen=True)
class MissingSeeds:
    """Cells that lack the same seeds."""

    seeds: tuple[int, ...]
    """In the order of the plan; none: the cells have no run at all."""
    cells: tuple[PlannedCell, ...]


def missing_seeds(planned: Sequence[PlannedRun], left_out: Iterable[PlannedRun]) -> tuple[MissingSeeds, ...]:
    """What is missing of a plan without some of its runs: most cells first, those that are missing as a whole last."""
    of_cells: dict[str, list[int]] = {}
    cells = {}
    for run in planned:
        cells[run.cell.id] = run.cell
        of_cells.setdefault(run.cell.id, []).append(run.seed)
    gone = {run.key for run in left_out}
    groups: dict[tuple[int, ...], list[PlannedCell]] = {}
    for cell, seeds in of_cells.items():
        missing = tuple(seed for seed in seeds if (cell, seed) in gone)
        if missing:
            groups.setdefault(() if len(missing) == len(seeds) else missing, []).append(cells[cell])
    found = [MissingSeeds(seeds, tuple(those)) for seeds, those in groups.items()]
    return tuple(sorted(found, key=lambda one: (not one.seeds, -len(one.cells))))
