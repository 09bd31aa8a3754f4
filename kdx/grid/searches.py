"""Gives each cell of a grid the search that `tune:` asks for, and checks that the search can be made."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

from pydantic import ValidationError

from kdx.components.registry import at_hand
from kdx.errors import KdxError
from kdx.grid.identity import cell_id
from kdx.grid.messages import located
from kdx.grid.plan import PlannedCell
from kdx.grid.source import Node, at_path
from kdx.grid.spec import CellSpec
from kdx.grid.tuning import Choice, Distribution, DrawnRange, Pruner, Sampler, Search, Space, Tune, Tuning


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
    space: dict[str, Distribution] = {}
    for name, drawn in tune.parameters.items():
        if name in varied:
            problem = f"`{name}` is tuned, but an axis or --set decides it"
            place = node.key(("parameters", name))
            faults.append(KdxError(problem, place=place, hint="take it out of one of them"))
        space[name] = Choice(tuple(drawn)) if isinstance(drawn, list) else drawn
    if len(faults) > before:
        return list(cells)
    tuning = Tuning.model_validate({name: getattr(tune, name) for name in Tuning.model_fields})
    searched = [replace(cell, search=_search(cell, space, tuning, node, faults)) for cell in cells]
    if len(faults) == before:
        tuned = {name for cell in searched if cell.search for name in cell.search.space}
        for name in space.keys() - tuned:
            problem = f"`{name}` makes no difference to any cell"
            faults.append(KdxError(problem, place=node.key(("parameters", name)), hint="take it out"))
    return searched


def _shared_seeds(tune: Tune, node: Node, winners: Collection[int]) -> Iterator[KdxError]:
    if both := sorted({*tune.seeds} & {*winners}):
        problem = f"seed {both[0]} is a tuning seed and one that winners are trained with"
        hint = "winners are trained with seeds that no trial used: give `tune` other seeds, or a number of them"
        yield KdxError(problem, place=node.key(("seeds",)) if "seeds" in node.value else node.place, hint=hint)


def _search(cell: PlannedCell, drawn: Space, tuning: Tuning, node: Node, faults: list[KdxError]) -> Search | None:
    """Return the search for one cell; None if nothing of it is tuned, or something is wrong."""
    own_faults: list[KdxError] = []
    settings = reduce(Node.overlaid, cell.settings)
    parameters = node.value["parameters"].value
    space = {
        name: distribution
        for name, distribution in drawn.items()
        if _makes_a_difference(cell, settings, name, distribution, parameters[name], own_faults)
    }
    if not space and not own_faults:
        return None
    training = cell.spec.training
    early = tuning.pruner in (Pruner.MEDIAN, Pruner.HYPERBAND)
    if early and training.validate_every is not None and training.validate_every >= training.steps:
        problem = f"pruner {tuning.pruner} without a validation before the last of {training.steps} steps"
        hint = "set training.validate_every, or `pruner: none`"
        own_faults.append(KdxError(problem, place=node.key(("pruner",)), hint=hint))
    if tuning.sampler is Sampler.GRID:
        own_faults.extend(_without_grid(space, tuning, node))
    has_range = any(isinstance(distribution, DrawnRange) for distribution in space.values())
    if tuning.sampler is Sampler.CMA_ES and not has_range:
        problem, hint = "sampler cma-es without a range", "it draws numbers alone; take tpe or grid"
        own_faults.append(KdxError(problem, place=node.key(("sampler",)), hint=hint))
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
    return Search(cell.id, json.dumps(settings.plain(), sort_keys=True), space, tuning, components)


def _without_grid(space: Space, tuning: Tuning, node: Node) -> list[KdxError]:
    ranges = [name for name, distribution in space.items() if isinstance(distribution, DrawnRange)]
    if ranges:
        hint = "write its values as a list, or take another sampler"
        place = node.value["parameters"].value[ranges[0]].place
        return [KdxError(f"sampler grid with a range of `{ranges[0]}`", place=place, hint=hint)]
    size = prod(len(distribution.ends) for distribution in space.values())
    if tuning.trials > size:
        problem = f"{tuning.trials} trials of a grid of {size} combinations"
        return [KdxError(problem, place=node.key(("trials",)), allowed=f"at most {size}")]
    return []


def _makes_a_difference(
    cell: PlannedCell,
    settings: Node,
    name: str,
    distribution: Distribution,
    node: Node,
    faults: list[KdxError],
) -> bool:
    """Return whether the ends of a distribution are different cells; what keeps one from being a cell is a fault."""
    ids: set[str] = set()
    for index, value in enumerate(distribution.ends):
        place = node.at((index,) if isinstance(distribution, Choice) else (("low", "high")[index],))
        given = node.inner((index,)) if isinstance(distribution, Choice) else None
        over = at_path(name.split("."), given or Node(place, value))
        laid = settings.overlaid(over)
        try:
            ids.add(cell_id(CellSpec.model_validate(laid.plain())))
        except ValidationError as error:
            faults.extend(located(error, laid, CellSpec))
            return True
    if 1 < len(ids) < len(distribution.ends):
        labels = ", ".join(f"{axis} {word}" for axis, word in cell.labels.items())
        problem = f"two values of `{name}` are the same cell{f' {labels}' if labels else ''}"
        faults.append(KdxError(problem, place=node.place, hint="keep one of them"))
    return len(ids) > 1
