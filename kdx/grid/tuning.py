"""What a grid tunes: for each cell the nuisance parameters, and how they are searched.

A cell of the grid is a template then: a trial is the cell with other values of the parameters, and the best trial's
cell takes the template's place.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Field, GetJsonSchemaHandler, Tag, WithJsonSchema, model_validator
from pydantic_core import CoreSchema

from kdx.grid.cell_selector import factors
from kdx.grid.field_types import Bounded, Number, OneOf, Schema, Section, not_allowed, refuse
from kdx.grid.identity import hash_of
from kdx.grid.layers import is_choice
from kdx.grid.seeds import NumberOrList
from kdx.grid.spec import CellSpec

FIRST_SEED = 1_000_000
"""First of the tuning seeds where a grid gives their number: a number of seeds never comes to it."""
MOST_TRIALS = 10_000
MOST_PARAMETERS = 20
MOST_TUNING_SEEDS = 1000
UNTUNED = ("task", "select", "evaluation")
"""Keys of a cell that decide what is measured: trials with other values would not compare."""
LEAST_WILCOXON = 3
"""Tuning seeds without which the signed-rank test can end nothing early: Optuna's compares two at least."""


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


class Pruner(StrEnum):
    """How a trial is ended early."""

    NONE = "none"
    MEDIAN = "median"
    """It ends after a validation whose score is worse than the median of the trials before it at that step."""
    HYPERBAND = "hyperband"
    """It ends by successive halving over validations, in several brackets (Li et al. 2018)."""
    WILCOXON = "wilcoxon"
    """It ends before its next tuning seed when its seeds are worse than the best trial's by a signed-rank test."""


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


class DrawnRange(Section):
    """A parameter that is a number between two others, both included."""

    low: Number
    """The least number."""
    high: Number
    """The largest number."""
    log: Annotated[bool, Field(strict=True)] = False
    """Whether it is drawn evenly in its logarithm."""
    step: Number | None = None
    """How far apart two neighbouring values are."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        low, high = self.low, self.high
        if low >= high:
            hint = f"swap them: {{low: {high}, high: {low}}}" if low > high else None
            raise refuse("low", f"a range from {low} to {high}", allowed="from a smaller to a larger", hint=hint)
        if self.log and low <= 0:
            raise refuse("low", f"a logarithmic range from {low}", allowed="from a number above 0")
        if self.step is not None and self.log:
            raise refuse("step", "a range with both `log` and `step`", hint="keep one of them")
        if self.step is not None and not 0 < self.step <= high - low:
            raise refuse("step", f"a step of {self.step}", allowed=f"above 0, at most {high - low}")
        return self

    @property
    def whole(self) -> bool:
        """True if it is a whole number."""
        return all(isinstance(end, int) for end in (self.low, self.high, *([] if self.step is None else [self.step])))

    @property
    def plain(self) -> dict[str, Any]:
        """Its JSON value."""
        return self.model_dump(exclude_defaults=True)

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that are tried against the rules of cells before anything starts."""
        return (self.low, self.high)


Distribution = Choice | DrawnRange
Space = Mapping[str, Distribution]
"""Factor, such as `training.learning_rate` → how it is drawn."""


def distribution_of(plain: Any) -> Distribution:
    """Return a distribution from its JSON value."""
    return Choice(tuple(plain)) if isinstance(plain, list) else DrawnRange.model_validate(plain)


def _different(value: Any) -> Any:
    if not isinstance(value, list):
        raise not_allowed("a list of values, or {low: …, high: …} with `log: true` or `step: …`")
    texts = {json.dumps(each, sort_keys=True) for each in value}
    if len(value) < 2 or len(texts) < len(value):
        raise not_allowed("two or more different values")
    return value


def _parameter(name: str) -> str:
    if name.partition(".")[0] in UNTUNED:
        problem = f"`{name}` is no parameter: it decides what is measured"
        raise refuse("", problem, allowed=", ".join(parameters()), hint="vary it on an axis")
    return name


class _Tunable(OneOf):
    """Annotates a factor, or a choice of some layers, such as `layers.last.kernel`."""

    def _check(self, value: Any) -> str:
        return value if isinstance(value, str) and is_choice(value.split(".")) else super()._check(value)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        of_layers = {"pattern": r"^layers\.[^.]+\."}
        return {"type": "string", "anyOf": [super().__get_pydantic_json_schema__(core, handler), of_layers]}


def parameters() -> tuple[str, ...]:
    """Return the factors that may be tuned."""
    return tuple(name for name in factors() if name.partition(".")[0] not in UNTUNED)


def _kind(value: Any) -> str:
    return "kdx.DrawnRange" if isinstance(value, dict) else "kdx.list"


Parameters = Annotated[
    dict[
        Annotated[str, _Tunable(parameters, key="parameter"), BeforeValidator(_parameter)],
        Annotated[
            Annotated[DrawnRange, Tag("kdx.DrawnRange")]
            | Annotated[
                list[Any],
                BeforeValidator(_different),
                WithJsonSchema({"type": "array", "minItems": 2, "uniqueItems": True}),
                Tag("kdx.list"),
            ],
            Discriminator(_kind),
        ],
    ],
    Field(min_length=1, max_length=MOST_PARAMETERS),
]
"""Factor → how it is drawn."""


_NUMBER_OR_LIST = NumberOrList(
    first=FIRST_SEED,
    most=MOST_TUNING_SEEDS,
    allowed="a number of seeds up to 1,000, or a list of different whole numbers from 0",
)


class Tuning(Section):
    """How every cell of a grid is searched: the same budget for all."""

    sampler: Sampler = Sampler.TPE
    """How trials are drawn: grid, random, tpe, gp or cma-es."""
    pruner: Pruner = Pruner.NONE
    """How trials are ended early: none, median, hyperband or wilcoxon."""
    trials: Annotated[int, Bounded(ge=1, le=MOST_TRIALS)]
    """Trials of every cell."""
    round: Annotated[int, Bounded(ge=1, le=MOST_TRIALS)] = 4
    """Trials that are drawn together, knowing the results of the rounds before."""
    seeds: Annotated[tuple[int, ...], _NUMBER_OR_LIST] = (FIRST_SEED,)
    """Tuning seeds, or how many: each trial is trained with all of them, and no winner with any."""
    seed: Annotated[int, Bounded(ge=0, lt=2**32)] = 0
    """Seed of the draws."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pruner is Pruner.WILCOXON and len(self.seeds) < LEAST_WILCOXON:
            problem = f"pruner wilcoxon with {len(self.seeds)} tuning seed{'' if len(self.seeds) == 1 else 's'}"
            hint = "it compares trials over tuning seeds, and ends a trial before its next one"
            raise refuse("pruner", problem, allowed=f"at least {LEAST_WILCOXON} seeds", hint=hint)
        return self

    @property
    def at_once(self) -> bool:
        """True if no trial depends on the result of another, so that all are drawn together."""
        return self.sampler in (Sampler.GRID, Sampler.RANDOM) and self.pruner is Pruner.NONE

    def round_of(self, number: int) -> int:
        """Return the round of a trial, from 0."""
        return 0 if self.at_once else number // self.round


class Tune(Tuning):
    """`tune:` of a grid."""

    parameters: Parameters
    """Factor → a list of its values, or a range {low: …, high: …} with `log` or `step`; drawn in each trial.

    A cell to which a parameter makes no difference is searched without it.
    """


def set_factor(settings: dict[str, Any], factor: str, value: Any) -> None:
    """Set a factor, such as `training.learning_rate`, in nested settings."""
    *path, last = factor.split(".")
    for step in path:
        settings = settings.setdefault(step, {})
    settings[last] = value


@dataclass(frozen=True)
class Search:
    """The search for one cell's parameters."""

    cell_id: str
    """Id of the template."""
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
        how = {key: value for key, value in self.tuning.model_dump(mode="json").items() if key != "trials"}
        if self.tuning.at_once:
            del how["round"]
        space = {name: self.space[name].plain for name in sorted(self.space)}
        components = {word: sha256 for (_, word), sha256 in self.components.items()}
        return hash_of([self.cell_id, json.loads(self.settings), space, how], components)

    def cell(self, parameters: Mapping[str, Any]) -> CellSpec:
        """Return the cell with these parameters.

        Raises:
            pydantic.ValidationError: there is no such cell.
        """
        settings: dict[str, Any] = json.loads(self.settings)
        for name, value in parameters.items():
            set_factor(settings, name, value)
        return CellSpec.model_validate(settings)

    @property
    def plain(self) -> dict[str, Any]:
        """Its JSON value, from which `of` makes it again."""
        return {
            "cell": self.cell_id,
            "settings": json.loads(self.settings),
            "space": {name: distribution.plain for name, distribution in self.space.items()},
            "tuning": self.tuning.model_dump(mode="json"),
            **(
                {"components": [[*component, sha256] for component, sha256 in self.components.items()]}
                if self.components
                else {}
            ),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Search":
        """Return the search of its JSON value (`plain`)."""
        space = {name: distribution_of(value) for name, value in plain["space"].items()}
        settings = json.dumps(plain["settings"], sort_keys=True)
        components = {(axis, word): sha256 for axis, word, sha256 in plain.get("components", ())}
        return cls(plain["cell"], settings, space, Tuning.model_validate(plain["tuning"]), components)
