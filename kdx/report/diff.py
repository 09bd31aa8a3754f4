"""How two runs or two cells differ: settings, conditions, scores, and curves bit for bit."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from kdx.grid.difference import varying
from kdx.store.records import CurveRecord, Provenance, RunRecord, RunState


@dataclass(frozen=True)
class Change:
    """A setting or a condition in which two sides differ."""

    name: str
    """A dotted field such as `training.steps`, or a condition such as `torch`."""
    before: Any
    """The value on the first side; None where it has none."""
    after: Any


@dataclass(frozen=True)
class CurveDifference:
    """How one metric of two runs differs."""

    name: str
    shared: int
    """Steps at which both have a number."""
    first: int | None
    """The first of them at which the two numbers are not the same bits; None if there is none."""
    largest: float | None
    """The largest absolute difference where both numbers are finite; None where they are nowhere."""
    at: int | None
    """The step of that difference."""
    only_before: int
    """Steps at which the first run alone has a number."""
    only_after: int


@dataclass(frozen=True)
class ScorePair:
    """The test scores of two runs, one on each side."""

    name: str
    before: float | None
    """The score; None unless the run is completed."""
    after: float | None
    before_run: int | None
    """The run; None if this side has none with the seed."""
    after_run: int | None

    @classmethod
    def of(cls, name: str, before: RunRecord | None, after: RunRecord | None) -> "ScorePair":
        return cls(name, _score(before), _score(after), before and before.id, after and after.id)


def setting_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return the fields in which two resolved cells differ."""
    return [Change(field, *values) for field, values in varying([before, after]).items()]


def condition_changes(before: Iterable[Provenance], after: Iterable[Provenance]) -> list[Change]:
    """Return the libraries, machine, data and code by which the runs of two sides differ.

    A side whose runs have several conditions has the list of them.
    """
    left, right = _conditions(before), _conditions(after)
    return [
        Change(name, _single(left.get(name, [])), _single(right.get(name, [])))
        for name in (left | right)
        if left.get(name, []) != right.get(name, [])
    ]


def _conditions(origins: Iterable[Provenance]) -> dict[str, list[Any]]:
    """Condition → its different values among runs that have begun."""
    conditions: dict[str, list[Any]] = {}
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
            values = conditions.setdefault(name, [])
            if value not in values:
                values.append(value)
    return {name: sorted(values, key=str) for name, values in conditions.items()}


def _single(values: Sequence[Any]) -> Any:
    return None if not values else values[0] if len(values) == 1 else list(values)


def curve_differences(before: Mapping[str, CurveRecord], after: Mapping[str, CurveRecord]) -> list[CurveDifference]:
    """Compare each metric that one of two runs recorded, in alphabetical order."""
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
    distances = [(abs(left[step][0] - right[step][0]), -step) for step in shared]
    largest, at = max(((distance, step) for distance, step in distances if isfinite(distance)), default=(None, None))
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
    all_bits = array("q", curve.values.tobytes())
    return {step: (value, bits) for step, value, bits in zip(curve.steps, curve.values, all_bits, strict=True)}


def seed_pairs(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> list[ScorePair]:
    """Pair the runs of two cells by seed; each side has one run a seed."""
    left, right = ({run.seed: run for run in runs} for runs in (before, after))
    seeds = sorted(left.keys() | right.keys())
    return [ScorePair.of(f"seed {seed}", left.get(seed), right.get(seed)) for seed in seeds]


def _score(run: RunRecord | None) -> float | None:
    return run.test_score if run is not None and run.state is RunState.COMPLETED else None
