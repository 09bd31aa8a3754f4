"""A grid's dimensions multiplied out into cells.

A cell is the grid's settings with one bundle of each dimension laid over them, the last dimension's on top. Axes,
approaches and tasks are all dimensions: a bundle of an axis over a factor sets that factor, a bundle of a named axis or
of approaches sets several. A preset lies under all that the grid sets; a bundle's preset replaces the grid's. Of the
combinations some may be excluded, before anybody asks whether there is such a cell; then overrides are laid over those
that they are for; and combinations from beside the product are included.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from graphlib import TopologicalSorter
from itertools import product
from math import prod
from typing import Any

from pydantic import ValidationError

from kdx.errors import KdxError, by_place
from kdx.grid.cell_selector import choice, factors, without_effect
from kdx.grid.conditions import Combination, Condition, ConditionReader
from kdx.grid.identity import cell_id
from kdx.grid.messages import located
from kdx.grid.plan import PlannedCell
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import leaves

MOST_LOOKED_AT = 20_000
"""Largest number of faults, repeated ones included; after them the other cells are not checked."""


@dataclass(frozen=True)
class Bundle:
    """One choice: its label, and the settings it stands for."""

    label: str
    settings: Node
    preset: Node | None = None
    """Settings that lie under all that the grid sets."""
    inner: Mapping[str, "Bundle"] = field(default_factory=dict)
    """Further axes that vary with it, or only under it, and their choices, which lie over its own settings."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All that it sets, each over the ones before."""
        return (self.settings, *(one.settings for one in self.inner.values()))


@dataclass(frozen=True)
class Dimension:
    """An axis of the product."""

    name: str
    bundles: tuple[Bundle, ...]
    when: Condition | None = None
    """It varies only in combinations that fulfil this; in others it sets nothing."""
    baseline: str | None = None
    """The choice that all others are to be compared with."""
    written_when: Node | None = None
    """The condition as the file has it, from which `when` is read once all axes are known."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Its own axis, and those of its bundles."""
        return tuple(dict.fromkeys([self.name, *(name for bundle in self.bundles for name in bundle.inner)]))

    @cached_property
    def decides(self) -> frozenset[str]:
        """The axes and the factors that it has a say in."""
        nodes = (node for bundle in self.bundles for node in bundle.nodes)
        return frozenset(self.names).union(*(paths(node.plain()) for node in nodes))


def paths(settings: Mapping[str, Any]) -> frozenset[str]:
    """The factors that settings set."""
    return frozenset(path for path, _ in leaves(settings))


def in_order(dimensions: Sequence[Dimension]) -> list[Dimension]:
    """Those that vary under a condition, each after the ones that its condition asks about.

    Raises:
        CycleError: some depend on each other; its second argument names them, the first one once more at the end.
    """
    conditional = {one.name: one for one in dimensions if one.when is not None}
    asked = {
        name: [other.name for other in conditional.values() if one.when and other.decides & one.when.factors]
        for name, one in conditional.items()
    }
    return [conditional[name] for name in TopologicalSorter(asked).static_order()]


@dataclass(frozen=True)
class Override:
    """Settings laid over the combinations that fulfil a condition."""

    when: Condition
    settings: Node


@dataclass(frozen=True)
class SubGrid:
    """Settings and the dimensions that vary over them."""

    base: Node
    dimensions: tuple[Dimension, ...]
    preset: Node | None = None
    """Settings that lie under all that the grid sets, unless a bundle has its own."""
    exclude: tuple[Condition, ...] = ()
    overrides: tuple[Override, ...] = ()
    on_top: Node | None = None
    """Settings that are laid over all others in every cell."""
    named: tuple[str, ...] = ()
    """The axes by which its cells are labelled, where its dimensions are only some of them."""

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes by which its cells are labelled."""
        return self.named or tuple(name for dimension in self.dimensions for name in dimension.names)

    @property
    def size(self) -> int:
        """Combinations, those that are excluded among them."""
        return prod(len(dimension.bundles) for dimension in self.dimensions)

    @property
    def values(self) -> int:
        """The most values that the grid can set in all cells together: each cell counts with the largest bundles."""
        largest = (max(map(_values, dimension.bundles), default=0) for dimension in self.dimensions)
        return self.size * (_count(self.base) + sum(largest))

    @property
    def conditions(self) -> Iterator[Condition]:
        """All that combinations are asked."""
        yield from self.exclude
        yield from (override.when for override in self.overrides)
        yield from (dimension.when for dimension in self.dimensions if dimension.when is not None)

    def combinations(self) -> Iterator[tuple[Mapping[str, str], tuple[Node, ...]]]:
        """Axis → choice of every combination that is not excluded, and what it sets, each over the ones before.

        The last dimension runs fastest.
        """
        for chosen in product(*(dimension.bundles for dimension in self.dimensions)):
            bundles = dict(zip((dimension.name for dimension in self.dimensions), chosen, strict=True))
            if self._varies(bundles):
                yield from self._unless_excluded(bundles)

    def _varies(self, bundles: dict[str, Bundle]) -> bool:
        """Takes out the bundles of dimensions that do not vary here; false for all but the first of those."""
        for dimension in self._conditional:
            others = {name: bundle for name, bundle in bundles.items() if name != dimension.name}
            if dimension.when is None or dimension.when.holds(self._combination(others)):
                continue
            if bundles[dimension.name] is not dimension.bundles[0]:
                return False
            del bundles[dimension.name]
        return True

    @cached_property
    def _conditional(self) -> list[Dimension]:
        return in_order(self.dimensions)

    def _unless_excluded(self, bundles: Mapping[str, Bundle]) -> Iterator[tuple[Mapping[str, str], tuple[Node, ...]]]:
        combination = self._combination(bundles)
        settings = combination.settings
        if self.exclude or self.overrides:
            # All of them are asked, so that each learns which words there are.
            hidden = [condition.holds(combination) for condition in self.exclude]
            if any(hidden):
                return
            overrides = [one.settings for one in self.overrides if one.when.holds(combination)]
            settings = self._settings(bundles, overrides) if overrides else settings
        yield combination.labels, settings

    def _combination(self, bundles: Mapping[str, Bundle]) -> Combination:
        labels = {}
        for name, bundle in bundles.items():
            if name:
                labels[name] = bundle.label
            labels |= {axis: one.label for axis, one in bundle.inner.items()}
        return Combination(labels, self._settings(bundles))

    def _settings(self, bundles: Mapping[str, Bundle], overrides: Sequence[Node] = ()) -> tuple[Node, ...]:
        presets = [preset for preset in (self.preset, *(bundle.preset for bundle in bundles.values())) if preset]
        own = (node for bundle in bundles.values() for node in bundle.nodes)
        return (*presets[-1:], self.base, *own, *overrides, *([self.on_top] if self.on_top is not None else []))


def cells_of(sub_grids: Sequence[SubGrid], faults: list[KdxError]) -> list[PlannedCell]:
    """Every cell; each fault goes to `faults` once, unless it is there already.

    Two choices that give the same cell are both kept: they share its id and its runs.

    Raises:
        Faults: so many cells are wrong, even if in the same places, that the others are not checked.
    """
    cells: list[PlannedCell] = []
    seen = {str(fault) for fault in faults}
    found = 0
    for sub_grid in sub_grids:
        before, sound = (len(cells), len(faults)), not faults
        for chosen, settings in sub_grid.combinations():
            node = reduce(Node.overlaid, settings)
            try:
                spec = CellSpec.model_validate(node.plain())
            except ValidationError as error:
                found += error.error_count()
                for fault in located(error, node, CellSpec):
                    if str(fault) not in seen:
                        seen.add(str(fault))
                        faults.append(fault)
                if found > MOST_LOOKED_AT:
                    raise by_place(faults) from error
                continue
            labels = {
                name: word for name in sub_grid.axes if (word := _label(spec, name, chosen.get(name))) is not None
            }
            cells.append(PlannedCell(cell_id(spec), len(cells), labels, spec, settings))
        if sub_grid.exclude and sub_grid.size and before == (len(cells), len(faults)):
            first = sub_grid.dimensions[0] if sub_grid.dimensions else None
            of = f" of {first.name} `{first.bundles[0].label}`" if first and len(sub_grids) > 1 else ""
            problem, place = f"`exclude` leaves no combination{of}", sub_grid.exclude[0].node.place
            faults.append(KdxError(problem, place=place, hint="exclude less"))
        if sound:
            _check_baselines(sub_grid, cells[before[0] :], faults)
    if all(sub_grid.size for sub_grid in sub_grids):  # else words may be missing because a sub-grid is faulty
        _check_conditions(sub_grids, faults)
    return cells


def prioritised(
    cells: Sequence[PlannedCell],
    node: Node | None,
    axes: Collection[str],
    settled: Collection[str],
    faults: list[KdxError],
) -> list[PlannedCell]:
    """The cells, each with the number of the first condition under `first` that it fulfils, or of none.

    The order is no part of a cell's identity: it decides when a run starts and nothing of what it computes.

    Args:
        node: what is written under `first`, if anything.
        axes: those of the grid that have a name of their own.
        settled: factors that the command line sets in every cell.
    """
    if node is None:
        return list(cells)
    before = len(faults)
    reader = ConditionReader(axes, faults)
    conditions = [reader.read(item) for item in (node.value if isinstance(node.value, list) else [node])]
    ordered = []
    for cell in cells:
        combination = Combination(cell.labels, cell.settings)
        # All of them are asked, so that each learns which words there are.
        held = [condition is not None and condition.holds(combination) for condition in conditions]
        ordered.append(replace(cell, priority=held.index(True) if any(held) else len(held)))
    if len(faults) == before:
        faults.extend(fault for condition in conditions if condition for fault in condition.faults(settled))
    return ordered


def _check_conditions(sub_grids: Sequence[SubGrid], faults: list[KdxError]) -> None:
    """A condition must say something of the grid as a whole, of whatever sub-grid."""
    settled = {path for one in sub_grids if one.on_top is not None for path in paths(one.on_top.plain())}
    for condition in {id(one): one for sub_grid in sub_grids for one in sub_grid.conditions}.values():
        faults.extend(condition.faults(settled))


def _check_baselines(sub_grid: SubGrid, cells: Sequence[PlannedCell], faults: list[KdxError]) -> None:
    """A change that leaves the baseline's cell as it is would be compared with itself."""
    for dimension in sub_grid.dimensions:
        if dimension.baseline is None:
            continue
        axis = dimension.name
        baselines: dict[tuple[tuple[str, str], ...], str] = {}
        changed: dict[str | None, list[tuple[tuple[tuple[str, str], ...], str]]] = {}
        for cell in cells:
            label = cell.labels.get(axis)
            others = tuple((name, word) for name, word in cell.labels.items() if name != axis)
            if label == dimension.baseline:
                baselines[others] = cell.id
            else:
                changed.setdefault(label, []).append((others, cell.id))
        for bundle in dimension.bundles:
            pairs = changed.get(bundle.label, [])
            if pairs and all(baselines.get(others) == one for others, one in pairs):
                problem = f"the change `{bundle.label}` gives the baseline itself"
                faults.append(KdxError(problem, place=bundle.settings.place, hint="remove it"))


def _label(spec: CellSpec, axis: str, chosen: str | None) -> str | None:
    """The choice in the words of the grid; None where the cell lacks the axis.

    A choice of an option that no word of the cell has is `none`; of a factor that the combination does not set, it is
    the cell's own word.
    """
    if without_effect(spec, axis):
        return "none"
    if chosen is not None or axis not in factors():
        return chosen
    return choice(spec.model_dump(mode="json", by_alias=True), axis)


def _values(bundle: Bundle) -> int:
    return sum(map(_count, bundle.nodes)) + (_count(bundle.preset) if bundle.preset else 0)


def _count(node: Node) -> int:
    """The number of values in it, itself included."""
    inner = node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    return 1 + sum(map(_count, inner))
