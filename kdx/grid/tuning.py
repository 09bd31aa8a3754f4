"""What a grid tunes: for each cell the nuisance parameters, and how they are searched.

A cell of the grid is a template then: a trial is the cell with other values of the parameters, and the best trial's
cell takes the template's place.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from kdx.grid.identity import by_content
from kdx.grid.spec import CellSpec

FIRST_SEED = 1_000_000
"""First of the tuning seeds where a grid gives their number: a number of seeds never comes to it."""
ROUND = 4
"""Trials of a cell that are drawn together, unless the grid says otherwise."""


class Sampler(StrEnum):
    """How the parameters of a trial are drawn."""

    GRID = "grid"
    """Every combination of the values, each once, in an order that the search's seed draws."""
    RANDOM = "random"
    """Each trial for itself."""
    TPE = "tpe"
    """Tree-structured Parzen estimators (Bergstra et al. 2011)."""
    GP = "gp"
    """Gaussian processes."""
    CMA_ES = "cma-es"
    """Covariance matrix adaptation (Hansen & Ostermeier 2001)."""

    @property
    def learns(self) -> bool:
        """Whether a draw depends on the results of trials before it."""
        return self not in (Sampler.GRID, Sampler.RANDOM)


class Pruner(StrEnum):
    """How a trial is ended early."""

    NONE = "none"
    MEDIAN = "median"
    """After a validation whose score is worse than the median of the trials before it at that step."""
    HYPERBAND = "hyperband"
    """By successive halving over validations, in several brackets (Li et al. 2018)."""
    WILCOXON = "wilcoxon"
    """Before its next tuning seed, when its seeds so far are worse than the best trial's by a signed-rank test."""


@dataclass(frozen=True)
class Choice:
    """A parameter that is one of several values."""

    values: tuple[Any, ...]
    """Each as the grid writes it: a number, a word, a list, a mapping."""

    @property
    def plain(self) -> Any:
        return list(self.values)

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that are tried against the rules of cells before anything starts."""
        return self.values


@dataclass(frozen=True)
class Range:
    """A parameter that is a number between two others, both included."""

    low: float
    high: float
    log: bool = False
    """Whether it is drawn evenly in its logarithm."""
    step: float | None = None
    """The distance between two neighbouring values, counted from the low end; None: any number, or any whole one."""

    @property
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return all(isinstance(end, int) for end in (self.low, self.high, *([] if self.step is None else [self.step])))

    @property
    def plain(self) -> Any:
        found: dict[str, Any] = {"low": self.low, "high": self.high}
        if self.log:
            found["log"] = True
        if self.step is not None:
            found["step"] = self.step
        return found

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that are tried against the rules of cells before anything starts."""
        return (self.low, self.high)


Distribution = Choice | Range
Space = Mapping[str, Distribution]
"""Factor, such as `training.learning_rate` → how it is drawn."""


def distribution_of(plain: Any) -> Distribution:
    """A distribution from its JSON, which was checked before it was recorded."""
    return Choice(tuple(plain)) if isinstance(plain, list) else Range(**plain)


@dataclass(frozen=True)
class Tuning:
    """How every cell of a grid is searched: the same budget for all."""

    trials: int
    """Of each cell."""
    sampler: Sampler = Sampler.TPE
    pruner: Pruner = Pruner.NONE
    seeds: tuple[int, ...] = (FIRST_SEED,)
    """Tuning seeds: each trial is trained with every one, and no winner with any."""
    seed: int = 0
    """Seed of the draws."""
    round: int = ROUND
    """Trials that are drawn together; a draw knows the results of the rounds before."""

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "trials": self.trials,
            "sampler": self.sampler.value,
            "pruner": self.pruner.value,
            "seeds": list(self.seeds),
            "seed": self.seed,
            "round": self.round,
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Tuning":
        """From its JSON, which was checked before it was recorded."""
        return cls(
            plain["trials"],
            Sampler(plain["sampler"]),
            Pruner(plain["pruner"]),
            tuple(plain["seeds"]),
            plain["seed"],
            plain["round"],
        )

    @property
    def at_once(self) -> bool:
        """Whether no trial depends on the result of another, so that all are drawn together."""
        return not self.sampler.learns and self.pruner is Pruner.NONE

    def round_of(self, number: int) -> int:
        """The round of a trial, from 0."""
        return 0 if self.at_once else number // self.round


@dataclass(frozen=True)
class Search:
    """The search for one cell's parameters."""

    cell_id: str
    """Of the template."""
    settings: str
    """All that the grid sets in the template, as JSON. The parameters are laid over it, not over the resolved cell:
    what a cell derives from other settings then follows them."""
    space: Space
    tuning: Tuning
    components: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(axis, word) → hash of the source of each component from outside kdx that the cell or a distribution names."""

    @cached_property
    def id(self) -> str:
        """Hash of all that decides its trials, 32 hexadecimal digits. More trials only lengthen a search."""
        how = {key: value for key, value in self.tuning.plain.items() if key != "trials"}
        if self.tuning.at_once:
            del how["round"]
        space = {name: self.space[name].plain for name in sorted(self.space)}
        components = {word: sha256 for (_, word), sha256 in self.components.items()}
        whole = by_content([self.cell_id, json.loads(self.settings), space, how], components)
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def settings_with(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """What the grid sets in the template, with these parameters laid over it."""
        settings: dict[str, Any] = json.loads(self.settings)
        for name, value in parameters.items():
            *path, last = name.split(".")
            inner = settings
            for step in path:
                inner = inner.setdefault(step, {})
            inner[last] = value
        return settings

    def cell(self, parameters: Mapping[str, Any]) -> CellSpec:
        """The cell with these parameters.

        Raises:
            pydantic.ValidationError: there is no such cell.
        """
        return CellSpec.model_validate(self.settings_with(parameters))

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON, from which `of` makes it again."""
        return {
            "cell": self.cell_id,
            "settings": json.loads(self.settings),
            "space": {name: one.plain for name, one in self.space.items()},
            "tuning": self.tuning.plain,
            **(
                {"components": [[*component, sha256] for component, sha256 in self.components.items()]}
                if self.components
                else {}
            ),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Search":
        """From its JSON, which was checked before it was recorded."""
        space = {name: distribution_of(one) for name, one in plain["space"].items()}
        settings = json.dumps(plain["settings"], sort_keys=True)
        components = {(axis, word): sha256 for axis, word, sha256 in plain.get("components", ())}
        return cls(plain["cell"], settings, space, Tuning.of(plain["tuning"]), components)
