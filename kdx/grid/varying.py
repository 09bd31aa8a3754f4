"""What varies among cells: the fields in which they differ, with their values."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kdx.grid.table_layout import leaves


def varying(cells: Iterable[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Dotted field → its different values in the order of the cells, for each field in which the cells differ.

    A cell that lacks the field, such as an option of another kernel, has None there.

    Args:
        cells: every field of each cell in plain words.
    """
    every = list(cells)
    fields = {field: None for one in every[1:] for field in _differing(every[0], one)}
    return {field: _distinct(value(one, field) for one in every) for field in _in_order(fields, every[:1])}


def value(cell: Mapping[str, Any], field: str) -> Any:
    """What a cell has in a dotted field; None where it has no such field."""
    found: Any = cell
    for step in field.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def varying_first(cell: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """The same cell with these dotted fields before all others, at each level."""
    inner: dict[str, list[str]] = {}
    for field in fields:
        key, _, rest = field.partition(".")
        inner.setdefault(key, []).append(rest)
    ordered = {}
    for key in (*(key for key in inner if key in cell), *(key for key in cell if key not in inner)):
        its = cell[key]
        ordered[key] = varying_first(its, inner.get(key, ())) if isinstance(its, Mapping) else its
    return ordered


def _differing(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in dict.fromkeys((*one, *other)):
        left, right = one.get(key), other.get(key)
        # Sections are compared as a whole first: of thousands of cells few fields differ.
        if left != right:
            of_left, of_right = (value if isinstance(value, Mapping) else {} for value in (left, right))
            yield from _differing(of_left, of_right, f"{prefix}{key}.")
            left, right = (None if isinstance(value, Mapping) else value for value in (left, right))
            if left != right:
                yield f"{prefix}{key}"


def _in_order(fields: Iterable[str], cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """The fields in the order of a cell; those that it lacks come last."""
    order = {field: place for cell in cells for place, (field, _) in enumerate(leaves(cell))}
    return sorted(fields, key=lambda field: order.get(field, len(order)))


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for one in values:
        if one not in found:
            found.append(one)
    return tuple(found)
