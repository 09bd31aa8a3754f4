"""Gives each cell of a grid the search that `tune:` asks for, and checks that the search can be made."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any

from pydantic import ValidationError

from kdx.components.registry import at_hand
from kdx.errors import KdxError
from kdx.grid.conditions import Combination, Condition
from kdx.grid.identity import cell_id
from kdx.grid.messages import located
from kdx.grid.plan import PlannedCell
from kdx.grid.settings import at_path
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.tuning import Choice, Distribution, DrawnRange, Pruner, Sampler, Search, Tune, Tuning


def with_searches(
    cells: Sequence[PlannedCell],
    tune: Tune,
    node: Node,
    *,
    seeds: Collection[int],
    varied: Collection[str],
    faults: list[KdxError],
) -> list[PlannedCell]:
    """Return the cells, each with its search.

    Args:
        node: the mapping under `tune`.
        seeds: those that winners are trained with.
        varied: factors that an axis or the command line decides.
    """
    before = len(faults)
    faults.extend(_shared_seeds(tune, node, seeds))
    shared = _distributions(tune.parameters, node.value.get("parameters"), varied, faults)
    overrides: list[tuple[Condition, _Space]] = []
    for index, override in enumerate(tune.overrides):
        item = node.value["overrides"]
        item = item if isinstance(item.value, dict) else item.value[index]
        own = _distributions(override.parameters, item.value["parameters"], varied, faults)
        overrides.append((Condition.of(override.when, item.value["when"]), own))
    if len(faults) > before:
        return list(cells)
    tuning = Tuning.model_validate({name: getattr(tune, name) for name in Tuning.model_fields})
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
    if both := sorted({*tune.seeds} & {*winners}):
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
        distribution = Choice(tuple(drawn)) if isinstance(drawn, list) else drawn
        space[name] = node.value[name], distribution
    return space


def _search(cell: PlannedCell, drawn: _Space, tuning: Tuning, node: Node, faults: list[KdxError]) -> Search | None:
    """Return the search for one cell; None if nothing of it is tuned, or something is wrong."""
    space = {name: distribution for name, (_, distribution) in drawn.items() if distribution is not None}
    if not space:
        return None
    own_faults: list[KdxError] = []
    settings = reduce(Node.overlaid, cell.settings)
    training = cell.spec.training
    early = tuning.pruner in (Pruner.MEDIAN, Pruner.HYPERBAND)
    if early and training.validate_every is not None and training.validate_every >= training.steps:
        problem = f"pruner {tuning.pruner} without a validation before the last of {training.steps} steps"
        hint = "set training.validate_every, or `pruner: none`"
        own_faults.append(KdxError(problem, place=node.key(("pruner",)), hint=hint))
    if tuning.sampler is Sampler.GRID:
        own_faults.extend(_without_grid(space, tuning, node, drawn))
    has_range = any(isinstance(distribution, DrawnRange) for distribution in space.values())
    if tuning.sampler is Sampler.CMA_ES and not has_range:
        problem, hint = "sampler cma-es without a range", "it draws numbers alone; take tpe or grid"
        own_faults.append(KdxError(problem, place=node.key(("sampler",)), hint=hint))
    for name, distribution in space.items():
        own_faults.extend(_without_effect(cell, settings, name, distribution, drawn[name][0]))
    known = {str(fault) for fault in faults}
    faults.extend(fault for fault in own_faults if str(fault) not in known)
    if own_faults:
        return None
    words = {
        value
        for choice in space.values()
        if isinstance(choice, Choice)
        for value in choice.values
        if type(value) is str
    }
    words |= set(cell.spec.components)
    components = {
        (component.axis, component.word): component.sha256 for component in at_hand() if component.word in words
    }
    return Search(cell.id, json.dumps(settings.plain(), sort_keys=True), dict(space), tuning, components)


def _without_grid(space: dict[str, Distribution], tuning: Tuning, node: Node, drawn: _Space) -> list[KdxError]:
    ranges = [name for name, distribution in space.items() if isinstance(distribution, DrawnRange)]
    if ranges:
        hint = "write its values as a list, or take another sampler"
        return [KdxError(f"sampler grid with a range of `{ranges[0]}`", place=drawn[ranges[0]][0].place, hint=hint)]
    size = prod(len(distribution.ends) for distribution in space.values())
    if tuning.trials > size:
        problem = f"{tuning.trials} trials of a grid of {size} combinations"
        return [KdxError(problem, place=node.key(("trials",)), allowed=f"at most {size}")]
    return []


def _without_effect(
    cell: PlannedCell, settings: Node, name: str, distribution: Distribution, node: Node
) -> list[KdxError]:
    """Return the faults that keep the ends of a distribution from being cells, and different ones."""
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
