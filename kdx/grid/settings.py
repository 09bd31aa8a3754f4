"""The settings of a cell among the keys of a grid."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from kdx.errors import KdxError, shortened
from kdx.grid.sections import IN_A_FILE, Schema
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.synonyms import did_you_mean
from kdx.grid.words import known_options
from kdx.words.family import Family, cached_over_words

ENTRIES = frozenset({"tasks", "grids", "axes", "zip", "approaches", "exclude", "overrides", "evaluations", "tune"})
"""Keys of a grid that null takes out of one that it extends, and so it does their entries."""


@cached_over_words
def settings() -> tuple[str, ...]:
    """Every key that a cell can have at its top."""
    return (*CellSpec.model_fields, *known_options())


class In:
    """Annotates a key that must be one of these names; they are looked up when a key is checked, for they may grow."""

    def __init__(self, known: Callable[[], Iterable[str]], what: str) -> None:
        """`what`: such a key is called in a message."""
        self._known, self._what = known, what

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        known = self._known()
        names: Schema = {"type": "string", "enum": [*known]}
        return {"type": "string", "anyOf": [names, IN_A_FILE]} if isinstance(known, Family) else names

    def _check(self, key: str) -> str:
        known = tuple(self._known())
        if key not in known:
            context = {"what": self._what, "allowed": known, "hint": did_you_mean(key, known)}
            raise PydanticCustomError("unknown_name", "unknown name", context)
        return key


def settings_of(node: Node) -> Node:
    """What of a mapping is set in a cell."""
    return Node(node.place, {key: value for key, value in node.value.items() if key in settings()}, node.keys)


def settings_by_factor(node: Node) -> Node:
    """The settings of a mapping whose keys are factors: `training.steps: 100` is `training: {steps: 100}`."""
    whole = Node(node.place, {}, {})
    for key, value in node.value.items():
        whole = whole.overlaid(at_path(key.split("."), value))
    return whole


def at_path(path: Sequence[str], value: Node) -> Node:
    """A value under each step of a dotted key."""
    for step in reversed(path):
        value = Node(value.place, {step: value}, {step: value.place})
    return value


def check_keys(node: Node, known: Iterable[str], faults: list[KdxError]) -> None:
    """Every key must be a known one."""
    known = tuple(known)
    for key in node.value:
        if key not in known:
            problem, place = f"unknown key `{shortened(key)}`", node.key((key,))
            first, dot, rest = key.partition(".")
            nested = f"write {first}: {{{shortened(rest)}: …}}" if dot and first in known and rest else None
            faults.append(KdxError(problem, place=place, allowed=known, hint=nested or did_you_mean(key, known)))


def without_removed(node: Node, key: str = "", above: str = "") -> Node:
    """A grid without the entries that null took out of those that it was laid over."""
    if not isinstance(node.value, dict):
        return node
    return Node(
        node.place,
        {
            name: without_removed(inner, name, key)
            for name, inner in node.value.items()
            # The choices of a named axis are entries, too.
            if not (inner.value is None and inner.replaces and (not ENTRIES.isdisjoint((name, key)) or above == "axes"))
        },
        node.keys,
        node.replaces,
    )
