"""How two runs, two cells or two sweeps differ: settings, conditions, scores, and curves bit for bit."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from kdx.grid.difference import varying
from kdx.store.details import PlannedCellDetails, SweepDetails
from kdx.store.records import CurveRecord, Provenance, RunRecord, RunState


@dataclass(frozen=True)
class Change:
    """A setting or a condition in which two sides differ."""

    name: str
    """A dotted field such as `training.steps`, or a condition such as `torch`."""
    before: Any
    """On the first side; None where it has none."""
    after: Any


@dataclass(frozen=True)
class CurveDifference:
    """How one metric of two runs differs."""

    name: str
    shared: int
    """Steps at which both have a number."""
    first: int | None
    """The first of them at which the two numbers are not the same bits; None: there is none."""
    largest: float | None
    """The largest absolute difference where both numbers are finite; None where they are nowhere."""
    at: int | None
    """The step of that difference."""
    only_before: int
    """Steps at which the first run alone has a number."""
    only_after: int


@dataclass(frozen=True)
class ScorePair:
    """The scores of one seed, or of one cell, on both sides."""

    name: str
    before: Sequence[float]
    """One score a seed."""
    after: Sequence[float]
    before_run: int | None = None
    """The run, where it is one."""
    after_run: int | None = None


def setting_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return the fields in which two resolved cells differ."""
    return [Change(field, *values) for field, values in varying([before, after]).items()]


def condition_changes(before: Iterable[Provenance], after: Iterable[Provenance]) -> list[Change]:
    """The libraries, machine, data and code by which the runs of two sides differ.

    A side whose runs are of several conditions has the list of them.
    """
    left, right = _conditions(before), _conditions(after)
    return [
        Change(name, _one(left.get(name, [])), _one(right.get(name, [])))
        for name in (left | right)
        if left.get(name, []) != right.get(name, [])
    ]


def _conditions(origins: Iterable[Provenance]) -> dict[str, list[Any]]:
    """Condition → its different values among runs that have begun."""
    found: dict[str, list[Any]] = {}
    for origin in origins:
        if origin.environment is None:
            continue
        known = {
            **origin.environment,
            "data": origin.data,
            "code": origin.code,
            **{f"data: {name}": fact for name, fact in (origin.facts or {}).items()},
            **{f"code: {module}": sha256 for module, sha256 in (origin.modules or {}).items()},
        }
        for name, value in known.items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return {name: sorted(values, key=str) for name, values in found.items()}


def _one(values: Sequence[Any]) -> Any:
    return None if not values else values[0] if len(values) == 1 else list(values)


def curve_differences(before: Mapping[str, CurveRecord], after: Mapping[str, CurveRecord]) -> list[CurveDifference]:
    """For each metric that one of two runs recorded, in alphabetical order."""
    nothing = CurveRecord(array("q"), array("d"))
    return [
        _curve_difference(name, before.get(name, nothing), after.get(name, nothing))
        for name in sorted({*before, *after})
    ]


def _curve_difference(name: str, before: CurveRecord, after: CurveRecord) -> CurveDifference:
    left, right = _by_step(before), _by_step(after)
    shared = sorted(left.keys() & right.keys())
    # Bits, since NaN is no number that equals itself and 0.0 equals −0.0.
    first = next((step for step in shared if left[step][1] != right[step][1]), None)
    distances = [(abs(left[step][0] - right[step][0]), step) for step in shared]
    finite = [(distance, -step) for distance, step in distances if isfinite(distance)]
    largest, at = max(finite) if finite else (None, None)
    return CurveDifference(
        name=name,
        shared=len(shared),
        first=first,
        largest=largest,
        at=None if at is None else -at,
        only_before=len(left) - len(shared),
        only_after=len(right) - len(shared),
    )


def _by_step(curve: CurveRecord) -> dict[int, tuple[float, int]]:
    """Step → the number and its bits."""
    bits = array("q", curve.values.tobytes())
    return {step: (value, its) for step, value, its in zip(curve.steps, curve.values, bits, strict=True)}


def run_pair(before: RunRecord, after: RunRecord) -> ScorePair:
    """The test scores of two runs, which may be of different seeds."""
    seeds = dict.fromkeys((before.seed, after.seed))
    name = " and ".join(f"seed {seed}" for seed in seeds)
    return ScorePair(name, _scores([before]), _scores([after]), before.id, after.id)


def seed_pairs(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> list[ScorePair]:
    """The test scores of two cells seed by seed; each side has one run a seed."""
    left, right = ({run.seed: run for run in runs} for runs in (before, after))
    return [
        ScorePair(
            f"seed {seed}",
            _scores([left[seed]] if seed in left else []),
            _scores([right[seed]] if seed in right else []),
            left[seed].id if seed in left else None,
            right[seed].id if seed in right else None,
        )
        for seed in sorted({*left, *right})
    ]


def cell_pairs(before: SweepDetails, after: SweepDetails) -> list[ScorePair]:
    """The test scores of the cells that two sweeps word alike but are not the same cell.

    A cell that both plan has the same runs, and so nothing to compare.
    """
    shared = {one.id for one in before.cells} & {one.id for one in after.cells}
    left, right = (_by_labels(side.cells) for side in (before, after))
    return [
        ScorePair(" · ".join(labels.values()) or "the cell", _scores(one.runs), _scores(right[key].runs))
        for key, one in left.items()
        if key in right and one.id not in shared and right[key].id not in shared
        for labels in [one.labels]
    ]


def _by_labels(cells: Iterable[PlannedCellDetails]) -> dict[tuple[tuple[str, str], ...], PlannedCellDetails]:
    found: dict[tuple[tuple[str, str], ...], PlannedCellDetails] = {}
    for cell in cells:
        found.setdefault(tuple(sorted(cell.labels.items())), cell)
    return found


def _scores(runs: Iterable[RunRecord]) -> list[float]:
    return [run.test_score for run in runs if run.state is RunState.COMPLETED and run.test_score is not None]
