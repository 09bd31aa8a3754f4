"""Reads `tune:` of a grid: the parameters of every cell, and how they are searched."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from kdx.components.registry import at_hand
from kdx.errors import KdxError
from kdx.grid.cell_selector import factors
from kdx.grid.conditions import MOST_CONDITIONS, Combination, Condition, ConditionReader, Written
from kdx.grid.identity import cell_id
from kdx.grid.messages import located
from kdx.grid.plan import PlannedCell
from kdx.grid.sections import Bounded, Number, Section, as_list, distinct_list, not_allowed, refuse
from kdx.grid.seed_sources import SourceSeeds
from kdx.grid.settings import In, at_path
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.tuning import FIRST_SEED, ROUND, Choice, Distribution, Pruner, Range, Sampler, Search, Tuning
from kdx.vocabulary import Split

MOST_TRIALS = 10_000
MOST_PARAMETERS = 20
MOST_TUNING_SEEDS = 1000
UNTUNED = ("task", "select", "evaluation")
"""Keys of a cell that decide what is measured: trials with other values would not compare."""
LEAST_WILCOXON = 3
"""Tuning seeds without which the signed-rank test can end nothing early: Optuna's compares two at least."""


class DrawnRange(Section):
    """A range that numbers are drawn from."""

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


def parameters() -> tuple[str, ...]:
    """The factors that may be tuned."""
    return tuple(name for name in factors() if name.partition(".")[0] not in UNTUNED)


def _tuning_seeds(value: Any) -> tuple[int, ...]:
    if type(value) is int and 1 <= value <= MOST_TUNING_SEEDS:
        return tuple(range(FIRST_SEED, FIRST_SEED + value))
    right = isinstance(value, list) and value and all(type(seed) is int and 0 <= seed < 2**32 for seed in value)
    if not right or len(set(value)) < len(value):
        raise not_allowed("a number of seeds up to 1,000, or a list of different whole numbers from 0")
    return tuple(value)


def _kind(value: Any) -> str:
    return "<none>" if value is None else "<DrawnRange>" if isinstance(value, dict) else "<list>"


Parameters = Annotated[
    dict[
        Annotated[str, AfterValidator(_parameter), AfterValidator(In(parameters, "parameter"))],
        Annotated[
            Annotated[DrawnRange, Tag("<DrawnRange>")]
            | Annotated[
                list[Any],
                BeforeValidator(_different),
                WithJsonSchema({"type": "array", "minItems": 2, "uniqueItems": True}),
                Tag("<list>"),
            ]
            | Annotated[None, Tag("<none>")],
            Discriminator(_kind),
        ],
    ],
    Field(max_length=MOST_PARAMETERS),
]
"""Factor → how it is drawn; None: it is not tuned."""


class TuneOverride(Section):
    """Other parameters for some cells."""

    when: Written
    """The condition."""
    parameters: Parameters
    """Laid over those of all cells."""


_SEEDS = [
    {"type": "integer", "minimum": 1, "maximum": MOST_TUNING_SEEDS},
    distinct_list({"type": "integer", "minimum": 0, "exclusiveMaximum": 2**32}),
]


class Tune(Section):
    """`tune:` of a grid."""

    parameters: Parameters = Field(default_factory=dict)
    """Factor → a list of its values, or a range {low: …, high: …} with `log` or `step`; drawn in each trial."""
    overrides: Annotated[
        list[TuneOverride], BeforeValidator(as_list), Field(min_length=1, max_length=MOST_CONDITIONS)
    ] = Field(default_factory=list)
    """Other parameters for the cells that fulfil a condition; null takes one out."""
    sampler: Sampler = Sampler.TPE
    """How trials are drawn: grid, random, tpe, gp or cma-es."""
    pruner: Pruner = Pruner.NONE
    """How trials are ended early: none, median, hyperband or wilcoxon."""
    trials: Annotated[int, Bounded(ge=1, le=MOST_TRIALS)]
    """Trials of every cell."""
    round: Annotated[int, Bounded(ge=1, le=MOST_TRIALS)] = ROUND
    """Trials that are drawn together, knowing the results of the rounds before."""
    seeds: Annotated[tuple[int, ...], BeforeValidator(_tuning_seeds), WithJsonSchema({"anyOf": _SEEDS})] = (FIRST_SEED,)
    """Tuning seeds, or how many: each trial is trained with all of them, and no winner with any."""
    seed: Annotated[int, Bounded(ge=0, lt=2**32)] = 0
    """Seed of the draws."""
    metric: str | None = None
    """The validation metric that trials are compared by: the one that cells are selected by, and no other."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pruner is Pruner.WILCOXON and len(self.seeds) < LEAST_WILCOXON:
            problem = f"pruner wilcoxon with {len(self.seeds)} tuning seed{'' if len(self.seeds) == 1 else 's'}"
            hint = "it compares trials over tuning seeds, and ends a trial before its next one"
            raise refuse("pruner", problem, allowed=f"at least {LEAST_WILCOXON} seeds", hint=hint)
        return self


def with_searches(
    cells: Sequence[PlannedCell],
    tune: Tune,
    node: Node,
    *,
    seeds: Collection[int],
    axes: Collection[str],
    varied: Collection[str],
    faults: list[KdxError],
) -> list[PlannedCell]:
    """The cells, each with its search.

    Args:
        node: the mapping under `tune`.
        seeds: those that winners are trained with.
        axes: those of the grid that have a name of their own.
        varied: factors that an axis or the command line decides.
    """
    before = len(faults)
    faults.extend(_shared_seeds(tune, node, seeds))
    shared = _distributions(tune.parameters, node.value.get("parameters"), varied, faults)
    reader = ConditionReader(axes, faults)
    overrides: list[tuple[Condition, _Space]] = []
    for index, override in enumerate(tune.overrides):
        item = node.value["overrides"]
        item = item if isinstance(item.value, dict) else item.value[index]
        condition = reader.read(item.value["when"])
        own = _distributions(override.parameters, item.value["parameters"], varied, faults)
        if condition is not None:
            overrides.append((condition, own))
    if len(faults) > before:
        return list(cells)
    tuning = Tuning(tune.trials, tune.sampler, tune.pruner, tune.seeds, tune.seed, tune.round)
    searched = []
    for cell in cells:
        combination = Combination(cell.labels, cell.settings)
        space = dict(shared)
        # All conditions are asked, so that each learns which words there are.
        for own in [own for condition, own in overrides if condition.holds(combination)]:
            space |= own
        space = {name: drawn for name, drawn in space.items() if drawn[1] is not None}
        searched.append(replace(cell, search=_search(cell, space, tuning, node, faults)))
    faults.extend(fault for condition, _ in overrides for fault in condition.faults())
    if all(cell.search is None for cell in searched) and len(faults) == before:
        hint = "name some under `parameters`, such as training.learning_rate: {low: 1e-4, high: 1e-2, log: true}"
        faults.append(KdxError("`tune` has no parameters", place=node.place, hint=hint))
    return searched


_Space = dict[str, tuple[Node, Distribution | None]]
"""Factor → where its distribution is written, and the distribution; None: an override takes it out."""


def _shared_seeds(tune: Tune, node: Node, winners: Collection[int]) -> Iterator[KdxError]:
    if both := sorted({*tune.seeds} & {own for seed in winners for own in SourceSeeds.of(seed)}):
        problem = f"seed {both[0]} is a tuning seed and one that winners are trained with"
        hint = "winners are trained with seeds that no trial used: give `tune` other seeds, or a number of them"
        yield KdxError(problem, place=node.key(("seeds",)) if "seeds" in node.value else node.place, hint=hint)


def _distributions(
    parameters: Mapping[str, DrawnRange | list[Any] | None],
    node: Node | None,
    varied: Collection[str],
    faults: list[KdxError],
) -> _Space:
    space: _Space = {}
    for name, drawn in parameters.items():
        assert node is not None
        if name in varied:
            problem = f"`{name}` is tuned, but an axis or --set decides it"
            faults.append(KdxError(problem, place=node.key((name,)), hint="take it out of one of them"))
        distribution: Distribution | None = None
        if isinstance(drawn, DrawnRange):
            distribution = Range(drawn.low, drawn.high, drawn.log, drawn.step)
        elif drawn is not None:
            distribution = Choice(tuple(drawn))
        space[name] = node.value[name], distribution
    return space


def _search(cell: PlannedCell, drawn: _Space, tuning: Tuning, node: Node, faults: list[KdxError]) -> Search | None:
    """The search for one cell; None where nothing of it is tuned, or something is wrong."""
    space = {name: distribution for name, (_, distribution) in drawn.items() if distribution is not None}
    if not space:
        return None
    found: list[KdxError] = []
    settings = reduce(Node.overlaid, cell.settings)
    metric = cell.spec.selection[0]
    asked = node.value.get("metric")
    if asked is not None and asked.value != metric:
        test = str(asked.value).startswith(f"{Split.TEST}/")
        problem = f"trials are compared by `{metric}`, not by `{asked}`"
        hint = (
            "a search never reads the test split" if test else "`select: {metric: …}` says what cells are selected by"
        )
        found.append(KdxError(problem, place=asked.place, allowed=(metric,), hint=hint))
    training = cell.spec.training
    early = tuning.pruner in (Pruner.MEDIAN, Pruner.HYPERBAND)
    if early and training.validate_every is not None and training.validate_every >= training.steps:
        problem = f"pruner {tuning.pruner} without a validation before the last of {training.steps} steps"
        hint = "set training.validate_every, or `pruner: none`"
        found.append(KdxError(problem, place=node.key(("pruner",)), hint=hint))
    if tuning.sampler is Sampler.GRID:
        found.extend(_without_grid(space, tuning, node, drawn))
    if tuning.sampler is Sampler.CMA_ES and not any(isinstance(one, Range) for one in space.values()):
        problem, hint = "sampler cma-es without a range", "it draws numbers alone; take tpe or grid"
        found.append(KdxError(problem, place=node.key(("sampler",)), hint=hint))
    for name, distribution in space.items():
        found.extend(_without_effect(cell, settings, name, distribution, drawn[name][0]))
    said = {str(fault) for fault in faults}
    faults.extend(fault for fault in found if str(fault) not in said)
    if found:
        return None
    words = {value for one in space.values() if isinstance(one, Choice) for value in one.values if type(value) is str}
    words |= set(cell.spec.components)
    components = {
        (component.axis, component.word): component.sha256 for component in at_hand() if component.word in words
    }
    return Search(cell.id, json.dumps(settings.plain(), sort_keys=True), dict(space), tuning, components)


def _without_grid(space: dict[str, Distribution], tuning: Tuning, node: Node, drawn: _Space) -> list[KdxError]:
    ranges = [name for name, one in space.items() if isinstance(one, Range)]
    if ranges:
        hint = "write its values as a list, or take another sampler"
        return [KdxError(f"sampler grid with a range of `{ranges[0]}`", place=drawn[ranges[0]][0].place, hint=hint)]
    size = prod(len(one.ends) for one in space.values())
    if tuning.trials > size:
        problem = f"{tuning.trials} trials of a grid of {size} combinations"
        return [KdxError(problem, place=node.key(("trials",)), allowed=f"at most {size}")]
    return []


def _without_effect(
    cell: PlannedCell, settings: Node, name: str, distribution: Distribution, node: Node
) -> list[KdxError]:
    """What keeps the ends of a distribution from being cells, and different ones."""
    ids: set[str] = set()
    for index, value in enumerate(distribution.ends):
        place = node.at((index,) if isinstance(distribution, Choice) else (("low", "high")[index],))
        given = node.inner((index,)) if isinstance(distribution, Choice) else None
        over = at_path(name.split("."), given or Node(place, value))
        laid = settings.overlaid(over)
        try:
            ids.add(cell_id(CellSpec.model_validate(laid.plain())))
        except ValidationError as error:
            return located(error, laid, CellSpec)
    if len(ids) == len(distribution.ends):
        return []
    of = ", ".join(f"{axis} {word}" for axis, word in cell.labels.items())
    problem = f"`{name}` makes no difference to the cell{f' {of}' if of else ''}"
    return [KdxError(problem, place=node.place, hint="tune it under `overrides` where it does")]
