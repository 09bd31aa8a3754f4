"""A run as commands list it, and as `KEY=VALUE` chooses it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kdx.errors import KdxError, did_you_mean
from kdx.store.records import RunRecord
from kdx.store.remarks import NoteRecord, Remarks

KEYS = ("state", "seed", "run", "cell", "tag")
"""Keys that every run has beside its choices."""


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run, with what people wrote on it."""

    run: int
    cell: str
    choices: Mapping[str, str]
    """Axis → choice."""
    seed: int
    generation: int
    state: str
    step: int
    attempt: int
    valid_score: float | None
    valid_step: int | None
    test_score: float | None
    seconds: float | None
    error: str | None
    undertrained: str | None
    invalidated: str | None
    tags: Sequence[str]
    notes: Sequence[NoteRecord] = field(default_factory=tuple)
    not_needed: str | None = None
    """Why the rule of its sweep does not need it."""

    def values(self, key: str) -> Sequence[str]:
        """Return the values of the run under a key of `KEY=VALUE`."""
        match key:
            case "state":
                reasons = {"invalidated": self.invalidated, "not_needed": self.not_needed}
                return [self.state, *(flag for flag, reason in reasons.items() if reason)]
            case "tag":
                return self.tags
            case "seed" | "run" | "cell":
                return [str(getattr(self, key))]
        return [self.choices.get(key, "–")]


def run_view(record: RunRecord, choices: Mapping[str, str], written: Remarks) -> RunView:
    """Return a run as commands list it.

    Args:
        written: the notes and tags of the database.
    """
    return RunView(
        run=record.id,
        cell=record.cell_id,
        choices=choices,
        seed=record.seed,
        generation=record.generation,
        state=record.state.value,
        step=record.progress_step,
        attempt=record.attempt,
        valid_score=record.valid_score,
        valid_step=record.valid_step,
        test_score=record.test_score,
        seconds=record.seconds,
        error=record.error,
        undertrained=record.undertrained,
        invalidated=record.invalidated,
        tags=written.tags_of_runs.get(record.id, ()),
        notes=written.of_runs.get(record.id, ()),
    )


View = TypeVar("View", bound=RunView)


def chosen(runs: Sequence[View], conditions: Sequence[str]) -> list[View]:
    """Return the runs that meet every `key=value`.

    Raises:
        KdxError: there is no such key, or no run has the value.
    """
    kept = list(runs)
    for condition in conditions:
        key, equals, value = condition.partition("=")
        known = tuple(dict.fromkeys([*KEYS, *(axis for run in kept for axis in run.choices)]))
        if not equals:
            raise KdxError(f"`{condition}` chooses nothing", allowed="key=value, such as state=failed")
        if kept and key not in known:
            raise KdxError(f"unknown key `{key}` in `{condition}`", allowed=known, hint=did_you_mean(key, known))
        matching = [run for run in kept if value in run.values(key)]
        if kept and not matching:
            values = tuple(dict.fromkeys(each for run in kept for each in run.values(key)))
            allowed = values or "no run has one yet"
            raise KdxError(f"no run has {condition}", allowed=allowed, hint=did_you_mean(value, values))
        kept = matching
    return kept
