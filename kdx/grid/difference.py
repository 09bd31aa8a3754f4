"""How two plans of one name differ: in cells, in seeds, and in fields of the cells."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kdx.errors import shortened
from kdx.grid.cell_selector import word
from kdx.grid.plan import Plan
from kdx.grid.seed_sources import seed_word
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import leaves
from kdx.grid.words import known_options

COMPONENTS = "components."
"""Begins the fields with the hashes of custom components."""
_MOST_VALUES = 3
"""Largest number of values of a field that a message shows on each side."""
_MOST_FIELDS = 4
"""Largest number of changed fields that a message shows."""
_DIGITS = 8
"""Of the hash of a component's source."""


@dataclass(frozen=True)
class Contents:
    """What is compared of a plan, and its file."""

    cells: Mapping[str, CellSpec | str]
    """Cell id → the cell, or its JSON (`CellSpec.text`)."""
    seeds: tuple[int, ...]
    file: str = ""
    """See `kdx.grid.plan.Plan.file`."""

    @classmethod
    def of(cls, plan: Plan) -> "Contents":
        """The contents of a plan."""
        return cls({cell.id: cell.spec for cell in plan.cells}, plan.seeds, plan.file)


@dataclass(frozen=True)
class FieldChange:
    """A field in which the cells of two plans differ."""

    field: str
    """Dotted, such as `training.steps`; or `seeds`."""
    gone: tuple[str, ...]
    """Values in words, of the plan before only."""
    new: tuple[str, ...]
    """Values in words, of the plan now only."""

    def __str__(self) -> str:
        if not self.new:
            return f"{self.field}: without {_listed(self.gone)}"
        if not self.gone:
            return f"{self.field}: also {_listed(self.new)}"
        return f"{self.field}: {_listed(self.gone)} → {_listed(self.new)}"


@dataclass(frozen=True)
class Difference:
    """How one plan became another; a run is a cell with a seed."""

    gone: tuple[str, ...]
    """Ids of cells of the plan before only."""
    new: tuple[str, ...]
    """Ids of cells of the plan now only."""
    shared: tuple[str, ...]
    seeds_gone: tuple[int, ...]
    seeds_new: tuple[int, ...]
    changes: tuple[FieldChange, ...]
    """The fields that explain why cells and seeds are gone or new; none where cells combine the same values anew."""
    runs_gone: int
    """How many runs only the plan before has."""

    @property
    def cells_that_lose_runs(self) -> tuple[str, ...]:
        """Ids of the cells of these plans."""
        return (*self.shared, *self.gone) if self.seeds_gone else self.gone

    def __str__(self) -> str:
        """The changes in a few words, however many there are."""
        changes = [str(change) for change in self.changes]
        if len(changes) > _MOST_FIELDS:
            changes[_MOST_FIELDS - 1 :] = [f"and {len(changes) - _MOST_FIELDS + 1} more"]
        return ", ".join(changes) or "other combinations of the same values"


def difference(before: Contents, now: Contents) -> Difference:
    """What only one of the plans has, and why."""
    gone = tuple(cell for cell in before.cells if cell not in now.cells)
    new = tuple(cell for cell in now.cells if cell not in before.cells)
    shared = tuple(cell for cell in before.cells if cell in now.cells)
    seeds_gone = tuple(seed for seed in before.seeds if seed not in set(now.seeds))
    seeds_new = tuple(seed for seed in now.seeds if seed not in set(before.seeds))
    changes = list(_changes(before, gone, now, new, shared)) if gone or new else []
    if seeds_gone or seeds_new:
        changes.append(FieldChange("seeds", tuple(map(seed_word, seeds_gone)), tuple(map(seed_word, seeds_new))))
    kept = len(shared) * (len(before.seeds) - len(seeds_gone))
    return Difference(
        gone=gone,
        new=new,
        shared=shared,
        seeds_gone=seeds_gone,
        seeds_new=seeds_new,
        changes=tuple(changes),
        runs_gone=len(before.cells) * len(before.seeds) - kept,
    )


def _changes(
    before: Contents, gone: tuple[str, ...], now: Contents, new: tuple[str, ...], shared: tuple[str, ...]
) -> Iterator[FieldChange]:
    """The fields in which the cells that are gone differ from the new ones.

    Where cells are only gone, or only new, it is the fields in which they differ from those that are shared.
    """
    left = _values(before.cells[cell] for cell in gone) if gone else _values(now.cells[cell] for cell in shared)
    right = _values(now.cells[cell] for cell in new or shared)
    for field in dict.fromkeys((*left, *right)):
        old, other = left.get(field, {}), right.get(field, {})
        lost = tuple(value for value in old if value not in other) if gone else ()
        found = tuple(value for value in other if value not in old) if new else ()
        if lost or found:
            yield FieldChange(field, lost, found)


def _values(cells: Iterable[CellSpec | str]) -> dict[str, dict[str, None]]:
    """Field → its values in words, in the order of the cells."""
    found: dict[str, dict[str, None]] = {}
    defaults = {name: option.default for name, option in known_options().items()}
    for cell in cells:
        spec: dict[str, Any] = json.loads(cell if isinstance(cell, str) else cell.text)
        # An option that no word of a cell has is no difference to one at its default.
        for field, value in leaves(spec | {name: default for name, default in defaults.items() if name not in spec}):
            shown = word(field, value)[:_DIGITS] if field.startswith(COMPONENTS) else word(field, value)
            found.setdefault(field, {})[shown] = None
    return found


def _listed(values: tuple[str, ...]) -> str:
    shown = [shortened(value) for value in values]
    if len(shown) > _MOST_VALUES:
        shown[_MOST_VALUES - 1 :] = [f"… ({len(shown)} values)"]
    return ", ".join(shown)
