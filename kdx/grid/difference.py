"""How cells differ, field by field, and how two plans of one name differ: in cells, in seeds, and in fields."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kdx.errors import shortened
from kdx.grid.cell_selector import leaves, word
from kdx.grid.plan import Plan
from kdx.grid.spec import CellSpec
from kdx.grid.words import known_options

COMPONENTS = "components."
"""Prefix of the fields with the hashes of custom components."""
_MOST_VALUES = 3
"""Largest number of values of a field that a message shows on each side."""
_MOST_FIELDS = 4
"""Largest number of changed fields that a message shows."""
_DIGITS = 8
"""Length to which the hash of a component's source is cut."""


def varying(cells: Iterable[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return dotted field → its different values in the order of the cells, for each field in which the cells differ.

    A cell that lacks the field, such as an option of another kernel, has None there.

    Args:
        cells: every field of each cell in plain values.
    """
    flat = [dict(leaves(cell)) for cell in cells]
    fields = dict.fromkeys(field for cell in flat for field in cell)
    values = {field: _distinct(cell.get(field) for cell in flat) for field in fields}
    return {field: different for field, different in values.items() if len(different) > 1}


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    different: list[Any] = []
    for value in values:
        if value not in different:
            different.append(value)
    return tuple(different)


@dataclass(frozen=True)
class Contents:
    """The cells and seeds of a plan, which are compared, and its file."""

    cells: Mapping[str, CellSpec | str]
    """Cell id → the cell, or its JSON (`CellSpec.text`)."""
    seeds: tuple[int, ...]
    file: str = ""
    """See `kdx.grid.plan.Plan.file`."""

    @classmethod
    def of(cls, plan: Plan) -> "Contents":
        """Return the contents of a plan."""
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
        """Return the changes in a few words, however many there are."""
        changes = [str(change) for change in self.changes]
        if len(changes) > _MOST_FIELDS:
            changes[_MOST_FIELDS - 1 :] = [f"and {len(changes) - _MOST_FIELDS + 1} more"]
        return ", ".join(changes) or "other combinations of the same values"


def difference(before: Contents, now: Contents) -> Difference:
    """Return what only one of the plans has, and why."""
    gone = tuple(cell for cell in before.cells if cell not in now.cells)
    new = tuple(cell for cell in now.cells if cell not in before.cells)
    shared = tuple(cell for cell in before.cells if cell in now.cells)
    seeds_before, seeds_now = set(before.seeds), set(now.seeds)
    seeds_gone = tuple(seed for seed in before.seeds if seed not in seeds_now)
    seeds_new = tuple(seed for seed in now.seeds if seed not in seeds_before)
    changes = list(_changes(before, gone, now, new, shared)) if gone or new else []
    if seeds_gone or seeds_new:
        changes.append(FieldChange("seeds", tuple(map(str, seeds_gone)), tuple(map(str, seeds_new))))
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
    """Yield the fields in which the cells that are gone differ from the new ones.

    If cells are only gone, or only new, these are the fields in which they differ from the shared ones.
    """
    left = _values(before.cells[cell] for cell in gone) if gone else _values(now.cells[cell] for cell in shared)
    right = _values(now.cells[cell] for cell in new or shared)
    for field in dict.fromkeys((*left, *right)):
        old, other = left.get(field, {}), right.get(field, {})
        removed = tuple(value for value in old if value not in other) if gone else ()
        added = tuple(value for value in other if value not in old) if new else ()
        if removed or added:
            yield FieldChange(field, removed, added)


def _values(cells: Iterable[CellSpec | str]) -> dict[str, dict[str, None]]:
    """Return field → its values in words, in the order of the cells."""
    values: dict[str, dict[str, None]] = {}
    defaults = {name: option.default for name, option in known_options().items()}
    for cell in cells:
        spec: dict[str, Any] = json.loads(cell if isinstance(cell, str) else cell.text)
        # An option that no name of a cell has is no difference to one at its default.
        for field, value in leaves(spec | defaults | spec):
            shown = word(field, value)[:_DIGITS] if field.startswith(COMPONENTS) else word(field, value)
            values.setdefault(field, {})[shown] = None
    return values


def _listed(values: tuple[str, ...]) -> str:
    shown = [shortened(value) for value in values]
    if len(shown) > _MOST_VALUES:
        shown[_MOST_VALUES - 1 :] = [f"… ({len(shown)} values)"]
    return ", ".join(shown)
