"""A grid's dimensions multiplied out into cells.

A cell is the grid's settings with one bundle of each dimension laid over them, the last dimension's on top. Axes,
approaches and tasks are all dimensions: a bundle of an axis over a factor sets that factor, a bundle of a named axis or
of approaches sets several. A preset lies under all that the grid sets; a bundle's preset replaces the grid's.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from pydantic import ValidationError

from kdx.errors import KdxError, by_place
from kdx.grid.cell_selector import choice, without_effect
from kdx.grid.faults import located
from kdx.grid.identity import cell_id
from kdx.grid.plan import PlannedCell
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec

MOST_LOOKED_AT = 20_000
"""Largest number of faults, repeated ones included; after them the other cells are not checked."""


@dataclass(frozen=True)
class Bundle:
    """One choice: its label, and the settings it stands for."""

    label: str
    settings: Node
    preset: Node | None = None
    """Settings that lie under all that the grid sets."""


@dataclass(frozen=True)
class Dimension:
    """An axis of the product."""

    name: str
    bundles: tuple[Bundle, ...]


@dataclass(frozen=True)
class SubGrid:
    """Settings and the dimensions that vary over them."""

    base: Node
    dimensions: tuple[Dimension, ...]
    preset: Node | None = None
    """Settings that lie under all that the grid sets, unless a bundle has its own."""

    @property
    def size(self) -> int:
        """Cells of the product."""
        return prod(len(dimension.bundles) for dimension in self.dimensions)

    @property
    def values(self) -> int:
        """The most values that the grid can set in all cells together: each cell counts with the largest bundles."""
        largest = (max(map(_values, dimension.bundles), default=0) for dimension in self.dimensions)
        return self.size * (_count(self.base) + sum(largest))

    def choices(self) -> Iterator[tuple[Bundle, ...]]:
        """Every combination, the last dimension running fastest."""
        return product(*(dimension.bundles for dimension in self.dimensions))


def cells_of(sub_grids: Iterable[SubGrid], faults: list[KdxError]) -> list[PlannedCell]:
    """Every cell; each fault goes to `faults` once.

    Two choices that give the same cell are both kept: they share its id and its runs.

    Raises:
        Faults: so many cells are wrong, even if in the same places, that the others are not checked.
    """
    cells: list[PlannedCell] = []
    seen: set[str] = set()
    found = 0
    for sub_grid in sub_grids:
        names = [dimension.name for dimension in sub_grid.dimensions]
        for bundles in sub_grid.choices():
            presets = [preset for preset in (sub_grid.preset, *(bundle.preset for bundle in bundles)) if preset]
            settings = (*presets[-1:], sub_grid.base, *(bundle.settings for bundle in bundles))
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
                    raise by_place(faults, all_found=False) from error
                continue
            labels = {name: _label(spec, name, bundle) for name, bundle in zip(names, bundles, strict=True)}
            cells.append(PlannedCell(cell_id(spec), len(cells), labels, spec, settings))
    return cells


def _label(spec: CellSpec, axis: str, bundle: Bundle) -> str:
    """The choice in the words of the grid. A choice of an option that no word of the cell has is not shown."""
    word = choice({}, axis) if without_effect(spec, axis) else None
    return bundle.label if word is None else word


def _values(bundle: Bundle) -> int:
    return _count(bundle.settings) + (_count(bundle.preset) if bundle.preset else 0)


def _count(node: Node) -> int:
    """The number of values in it, itself included."""
    inner = node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    return 1 + sum(map(_count, inner))
