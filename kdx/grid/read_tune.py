"""Reads `tune:` of a grid: the parameters of every cell, and how they are searched."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import reduce
from math import prod
from typing import TypeVar

from pydantic import ValidationError

from kdx.components.registry import at_hand
from kdx.errors import KdxError, shortened
from kdx.grid.cell_selector import factors
from kdx.grid.conditions import MOST_CONDITIONS, Combination, Condition, ConditionReader
from kdx.grid.faults import located
from kdx.grid.identity import cell_id
from kdx.grid.plan import PlannedCell
from kdx.grid.settings import at_path, check_keys, list_of
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.synonyms import did_you_mean
from kdx.grid.tuning import FIRST_SEED, Choice, Distribution, Pruner, Range, Sampler, Search, Tuning
from kdx.seed_sources import SourceSeeds
from kdx.vocabulary import Split

KEYS = {
    "parameters": "Factor → a list of its values, or a range {low: …, high: …} with `log` or `step`; drawn in each "
    "trial.",
    "overrides": "Other parameters for the cells that fulfil a condition; null takes one out.",
    "sampler": "How trials are drawn: grid, random, tpe, gp or cma-es.",
    "pruner": "How trials are ended early: none, median, hyperband or wilcoxon.",
    "trials": "Trials of every cell.",
    "round": "Trials that are drawn together, knowing the results of the rounds before.",
    "seeds": "Tuning seeds, or how many: each trial is trained with all of them, and no winner with any.",
    "seed": "Seed of the draws.",
    "metric": "The validation metric that trials are compared by: the one that cells are selected by, and no other.",
}
"""The keys of `tune`, with what each is."""
MOST_TRIALS = 10_000
MOST_PARAMETERS = 20
UNTUNED = ("task", "select", "evaluation")
"""Keys of a cell that decide what is measured: trials with other values would not compare."""
LEAST_WILCOXON = 3
"""Tuning seeds without which the signed-rank test can end nothing early: Optuna's compares two at least."""


def read_tune(
    node: Node | None,
    cells: Sequence[PlannedCell],
    *,
    seeds: Collection[int],
    axes: Collection[str],
    varied: Collection[str],
    faults: list[KdxError],
) -> list[PlannedCell]:
    """The cells, each with its search.

    Args:
        node: what stands under `tune`.
        seeds: those that winners are trained with.
        axes: those of the grid that have a name of their own.
        varied: factors that an axis or the command line decides.
    """
    before = len(faults)
    if node is None or (node.value is None and node.replaces):
        return list(cells)
    if not isinstance(node.value, dict):
        faults.append(KdxError(f"`{node}` under `tune`", place=node.place, allowed="a mapping"))
        return list(cells)
    check_keys(node, KEYS, faults)
    shared = _parameters(node.value.get("parameters"), varied, faults)
    overrides = _overrides(node.value.get("overrides"), ConditionReader(axes, faults), varied, faults)
    tuning = _tuning(node, seeds, faults)
    if len(faults) > before or tuning is None:
        return list(cells)
    found = []
    for cell in cells:
        combination = Combination(cell.labels, cell.settings)
        nodes = dict(shared)
        # All conditions are asked, so that each learns which words there are.
        for own in [own for condition, own in overrides if condition.holds(combination)]:
            nodes |= own
        space = {name: read for name, (_, read) in nodes.items() if read is not None}
        found.append(replace(cell, search=_search(cell, space, tuning, node, nodes, faults)))
    faults.extend(fault for condition, _ in overrides for fault in condition.faults())
    if all(cell.search is None for cell in found) and len(faults) == before:
        hint = "name some under `parameters`, such as training.learning_rate: {low: 1e-4, high: 1e-2, log: true}"
        faults.append(KdxError("`tune` has no parameters", place=node.place, hint=hint))
    return found


Word = TypeVar("Word", bound=StrEnum)
_Read = dict[str, tuple[Node, Distribution | None]]


def _parameters(node: Node | None, varied: Collection[str], faults: list[KdxError]) -> _Read:
    """Factor → its distribution; None: an override takes it out."""
    found: _Read = {}
    if node is None:
        return found
    if not isinstance(node.value, dict):
        faults.append(KdxError(f"`{node}` under `parameters`", place=node.place, allowed="a mapping of factors"))
        return found
    if len(node.value) > MOST_PARAMETERS:
        problem = f"{len(node.value)} parameters"
        faults.append(KdxError(problem, place=node.place, allowed=f"at most {MOST_PARAMETERS}"))
        return found
    known = tuple(name for name in factors() if name.partition(".")[0] not in UNTUNED)
    for name, given in node.value.items():
        place = node.key((name,))
        if name not in known:
            problem, hint = f"unknown parameter `{shortened(name)}`", did_you_mean(name, known)
            if name.partition(".")[0] in UNTUNED:
                problem, hint = f"`{name}` is no parameter: it decides what is measured", "vary it on an axis"
            faults.append(KdxError(problem, place=place, allowed=known, hint=hint))
        elif name in varied:
            problem = f"`{name}` is tuned, but an axis or --set decides it"
            faults.append(KdxError(problem, place=place, hint="take it out of one of them"))
        elif given.value is None:
            found[name] = given, None
        else:
            try:
                found[name] = given, _distribution(name, given)
            except KdxError as fault:
                faults.append(fault)
    return found


def _distribution(name: str, node: Node) -> Distribution:
    if isinstance(node.value, list):
        values = tuple(node.plain())
        texts = [json.dumps(value, sort_keys=True) for value in values]
        if len(values) < 2 or len(set(texts)) < len(texts):
            raise KdxError(
                f"`{node}` as the values of `{name}`", place=node.place, allowed="two or more different ones"
            )
        return Choice(values)
    if not isinstance(node.value, dict):
        allowed = "a list of values, or {low: …, high: …} with `log: true` or `step: …`"
        raise KdxError(f"`{node}` as the values of `{name}`", place=node.place, allowed=allowed)
    faults: list[KdxError] = []
    check_keys(node, ("low", "high", "log", "step"), faults)
    if faults:
        raise faults[0]
    for end in ("low", "high"):
        if end not in node.value:
            raise KdxError(f"a range without `{end}`", place=node.place, allowed="{low: …, high: …}")
    low, high = (_number(node.value[end], end) for end in ("low", "high"))
    if low >= high:
        hint = f"swap them: {{low: {high}, high: {low}}}" if low > high else None
        place = node.value["low"].place
        raise KdxError(f"a range from {low} to {high}", place=place, allowed="from a smaller to a larger", hint=hint)
    log = node.value["log"].value if "log" in node.value else False
    if not isinstance(log, bool):
        raise KdxError(f"`{shortened(log)}` as `log`", place=node.value["log"].place, allowed="true or false")
    if log and low <= 0:
        problem = f"a logarithmic range from {low}"
        raise KdxError(problem, place=node.value["low"].place, allowed="from a number above 0")
    if "step" not in node.value:
        return Range(low, high, log)
    step = _number(node.value["step"], "step")
    if log:
        problem = "a range with both `log` and `step`"
        raise KdxError(problem, place=node.value["step"].place, hint="keep one of them")
    if not 0 < step <= high - low:
        allowed = f"above 0, at most {high - low}"
        raise KdxError(f"a step of {step}", place=node.value["step"].place, allowed=allowed)
    return Range(low, high, log, step)


def _number(node: Node, what: str) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise KdxError(f"`{node}` as `{what}`", place=node.place, allowed="a number")
    number: float = node.value
    return number


def _overrides(
    node: Node | None, reader: ConditionReader, varied: Collection[str], faults: list[KdxError]
) -> list[tuple[Condition, _Read]]:
    """`- {when: condition, parameters: {…}}`"""
    found = []
    for item in list_of(node, faults, "overrides", most=MOST_CONDITIONS):
        check_keys(item, ("when", "parameters"), faults)
        missing = [key for key in ("when", "parameters") if key not in item.value]
        if missing:
            allowed = "{when: {task: translation}, parameters: {…}}"
            faults.append(KdxError(f"an override without `{missing[0]}`", place=item.place, allowed=allowed))
            continue
        condition = reader.read(item.value["when"])
        own = _parameters(item.value["parameters"], varied, faults)
        if condition is not None:
            found.append((condition, own))
    return found


def _tuning(node: Node, winners: Collection[int], faults: list[KdxError]) -> Tuning | None:
    before = len(faults)
    sampler = _word(node, "sampler", Sampler, Sampler.TPE, faults)
    pruner = _word(node, "pruner", Pruner, Pruner.NONE, faults)
    trials = _count(node, "trials", MOST_TRIALS, faults)
    if "trials" not in node.value:
        hint = "every cell gets as many, such as trials: 20"
        faults.append(KdxError("`tune` without `trials`", place=node.place, allowed="a number", hint=hint))
    each = _count(node, "round", MOST_TRIALS, faults) or Tuning.round
    seed = _count(node, "seed", 2**32 - 1, faults, least=0) or 0
    seeds = _seeds(node.value.get("seeds"), faults)
    if both := sorted({*seeds} & {one for seed in winners for one in SourceSeeds.of(seed)}):
        problem = f"seed {both[0]} is a tuning seed and one that winners are trained with"
        place = node.key(("seeds",)) if "seeds" in node.value else node.place
        hint = "winners are trained with seeds that no trial used: give `tune` other seeds, or a number of them"
        faults.append(KdxError(problem, place=place, hint=hint))
    if pruner is Pruner.WILCOXON and len(seeds) < LEAST_WILCOXON:
        problem = f"pruner wilcoxon with {len(seeds)} tuning seed{'' if len(seeds) == 1 else 's'}"
        hint = "it compares trials over tuning seeds, and ends a trial before its next one"
        place = node.key(("pruner",))
        faults.append(KdxError(problem, place=place, allowed=f"at least {LEAST_WILCOXON} seeds", hint=hint))
    if len(faults) > before or trials is None or sampler is None or pruner is None:
        return None
    return Tuning(trials, sampler, pruner, seeds, seed, each)


def _word(node: Node, key: str, words: type[Word], default: Word, faults: list[KdxError]) -> Word | None:
    if key not in node.value:
        return default
    given = node.value[key]
    if not isinstance(given.value, str) or given.value not in tuple(words):
        known = tuple(word.value for word in words)
        hint = did_you_mean(str(given.value), known)
        faults.append(KdxError(f"unknown {key} `{given}`", place=given.place, allowed=known, hint=hint))
        return None
    return words(given.value)


def _count(node: Node, key: str, most: int, faults: list[KdxError], *, least: int = 1) -> int | None:
    given = node.value.get(key)
    if given is None:
        return None
    if type(given.value) is not int or not least <= given.value <= most:
        allowed = f"a whole number from {least} to {most:,}"
        faults.append(KdxError(f"`{given}` as `{key}`", place=given.place, allowed=allowed))
        return None
    count: int = given.value
    return count


def _seeds(node: Node | None, faults: list[KdxError]) -> tuple[int, ...]:
    if node is None:
        return (FIRST_SEED,)
    value = node.plain()
    if type(value) is int and 1 <= value <= 1000:
        return tuple(range(FIRST_SEED, FIRST_SEED + value))
    right = isinstance(value, list) and value and all(type(seed) is int and 0 <= seed < 2**32 for seed in value)
    if right and len(set(value)) == len(value):
        return tuple(value)
    allowed = "a number of seeds up to 1,000, or a list of different whole numbers from 0"
    faults.append(KdxError(f"`{node}` are no seeds", place=node.place, allowed=allowed))
    return (FIRST_SEED,)


def _search(
    cell: PlannedCell,
    space: dict[str, Distribution],
    tuning: Tuning,
    node: Node,
    nodes: _Read,
    faults: list[KdxError],
) -> Search | None:
    """The search for one cell; None where nothing of it is tuned, or something is wrong."""
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
        found.extend(_without_grid(space, tuning, node, nodes))
    if tuning.sampler is Sampler.CMA_ES and not any(isinstance(one, Range) for one in space.values()):
        problem, hint = "sampler cma-es without a range", "it draws numbers alone; take tpe or grid"
        found.append(KdxError(problem, place=node.key(("sampler",)), hint=hint))
    for name, distribution in space.items():
        found.extend(_without_effect(cell, settings, name, distribution, nodes[name][0]))
    said = {str(fault) for fault in faults}
    faults.extend(fault for fault in found if str(fault) not in said)
    if found:
        return None
    words = {value for one in space.values() if isinstance(one, Choice) for value in one.values if type(value) is str}
    words |= set(cell.spec.parts)
    parts = {(part.axis, part.word): part.sha256 for part in at_hand() if part.word in words}
    return Search(cell.id, json.dumps(settings.plain(), sort_keys=True), dict(space), tuning, parts)


def _without_grid(space: dict[str, Distribution], tuning: Tuning, node: Node, nodes: _Read) -> list[KdxError]:
    ranges = [name for name, one in space.items() if isinstance(one, Range)]
    if ranges:
        hint = "write its values as a list, or take another sampler"
        return [KdxError(f"sampler grid with a range of `{ranges[0]}`", place=nodes[ranges[0]][0].place, hint=hint)]
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
