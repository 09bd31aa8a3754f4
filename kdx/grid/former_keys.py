"""Keys that a grid writes as an older kdx called them: they are read under the key of today, with a note."""

from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel

from kdx.errors import KdxError
from kdx.grid.fields import CellFields
from kdx.grid.sections import former_keys
from kdx.grid.source import Node

_NAMED_BY_THE_AUTHOR = frozenset({"approaches", "tasks", "grids", "evaluations", "ablate"})
"""Keys of mappings whose own keys are names that the author chose."""
_LISTS_OF_FACTORS = frozenset({"rows", "columns"})


@cache
def former_factors(model: type[BaseModel] = CellFields) -> Mapping[str, str]:
    """Former factor → the factor of today, both with their section: `training.warm_up` → `training.warmup`."""
    found = {former: key for key, formers in former_keys(model).items() for former in formers}
    for name, info in model.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            key = info.alias or name
            inner = former_factors(section)
            found |= {f"{key}.{former}": f"{key}.{today}" for former, today in inner.items()}
    return found


def under_todays_keys(
    node: Node, former: Mapping[str, str], notes: list[str], faults: list[KdxError], path: tuple[str, ...] = ()
) -> Node:
    """A grid's file with the keys of today, wherever a factor may stand.

    Args:
        former: see `former_factors`.
        notes: takes a line for each key that has another name now.
        faults: takes those of keys that are there under both names.
        path: keys that lead to `node`.
    """
    if not former:
        return node
    if isinstance(node.value, list):
        inner = [under_todays_keys(one, former, notes, faults, path) for one in node.value]
        return Node(node.place, inner, node.keys, node.replaces)
    if isinstance(node.value, str) and _lists_factors(path) and node.value in former:
        _note(notes, node, node.value, former[node.value])
        return Node(node.place, former[node.value], node.keys, node.replaces)
    if not isinstance(node.value, dict):
        return node
    values, keys = {}, {}
    for key, value in node.value.items():
        today = _today(key, former, path)
        place = node.keys.get(key, node.place)
        if today != key:
            _note(notes, Node(place, key), key, today)
            if today in node.value:
                problem = f"`{key}` is called `{today}` now, and both are here"
                faults.append(KdxError(problem, place=place, hint="keep one of them"))
                continue
        values[today] = under_todays_keys(value, former, notes, faults, (*path, today))
        keys[today] = place
    return Node(node.place, values, keys, node.replaces)


def _today(key: str, former: Mapping[str, str], path: tuple[str, ...]) -> str:
    """The name of today of a key below these others; the same where it is not a former one."""
    above = path[-1] if path else ""
    if above in _NAMED_BY_THE_AUTHOR or path[-2:-1] == ("axes",):
        return key
    if key in former:
        return former[key]
    section, _, today = former.get(f"{above}.{key}", "").rpartition(".")
    return today if section else key


def _lists_factors(path: tuple[str, ...]) -> bool:
    return "tables" in path[:-1] and path[-1] in _LISTS_OF_FACTORS


def _note(notes: list[str], at: Node, key: str, today: str) -> None:
    line = f"{at.place}: `{key}` is called `{today}` now; it is read as that"
    if line not in notes:
        notes.append(line)
