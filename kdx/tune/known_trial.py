"""Describes the trials of a search, without Optuna, so that a sweep that searches nothing never imports it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from kdx.grid.tuning import Pruner
from kdx.store.records import TrialState
from kdx.vocabulary import Direction

_EXACT = ConfigDict(ser_json_inf_nan="constants", defer_build=True)


@dataclass(frozen=True, config=_EXACT)
class KnownTrial:
    """A trial, as far as it is known."""

    number: int
    parameters: Mapping[str, Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    state: TrialState | None = None
    """None if it was drawn, and nothing is known of its result."""
    value: float | None = None
    curve: Mapping[int, float] = field(default_factory=dict)
    """Optimiser step → validation score there; for the signed-rank test, place of the tuning seed → score."""


@dataclass(frozen=True, config=_EXACT)
class Rivals:
    """The trials that one trial is judged against, with all that a worker needs to judge it."""

    pruner: Pruner
    direction: Direction
    search: str
    """Id of the search, by which Optuna's Hyperband assigns trials to brackets."""
    number: int
    """Number of the trial that is judged."""
    validations: int
    """Number of validations of a whole run, as far as it is known; else of the longest curve."""
    trials: tuple[KnownTrial, ...]
    """The trials of all earlier rounds, in the order of their numbers, with their curves, without parameters."""

    def text(self) -> str:
        """Return the rivals as text, for a message to a worker."""
        return _RIVALS.dump_json(self).decode()

    @classmethod
    def of(cls, text: str) -> "Rivals":
        """Read rivals from such a text."""
        return _RIVALS.validate_json(text)


_RIVALS = TypeAdapter(Rivals)
