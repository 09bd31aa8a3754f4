"""What a search knows of its trials; light, so that a sweep that searches nothing never imports Optuna."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kdx.grid.tuning import Pruner
from kdx.store.records import TrialState
from kdx.vocabulary import Direction


@dataclass(frozen=True)
class KnownTrial:
    """What a study knows of a trial."""

    number: int
    parameters: Mapping[str, Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    state: TrialState | None = None
    """None: it is drawn, and nothing is known of its result."""
    value: float | None = None
    curve: Mapping[int, float] = field(default_factory=dict)
    """Optimiser step → validation score there; for the signed-rank test, place of the tuning seed → score."""


@dataclass(frozen=True)
class Rivals:
    """The trials that one trial is judged against, with all that a worker needs to judge it."""

    pruner: Pruner
    direction: Direction
    search: str
    """Id of the search, by which Optuna's Hyperband assigns trials to brackets."""
    number: int
    """Of the trial that is judged."""
    validations: int
    """How many a whole run has, as far as it is known; else of the longest curve."""
    trials: tuple[KnownTrial, ...]
    """All of the rounds before, in the order of their numbers, with their curves."""

    def text(self) -> str:
        """For a message to a worker."""
        return json.dumps(
            [
                self.pruner,
                self.direction,
                self.search,
                self.number,
                self.validations,
                [[one.number, one.state, one.value, [*one.curve.items()]] for one in self.trials],
            ]
        )

    @classmethod
    def of(cls, text: str) -> "Rivals":
        """From such a message."""
        pruner, direction, search, number, validations, trials = json.loads(text)
        known = tuple(
            KnownTrial(of, {}, {}, None if state is None else TrialState(state), value, dict(curve))
            for of, state, value, curve in trials
        )
        return cls(Pruner(pruner), Direction(direction), search, number, validations, known)
