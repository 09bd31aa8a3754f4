"""The settings of a cell among the keys of a grid."""

from collections.abc import Sequence

from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.words import known_options
from kdx.words.family import cached_over_words

ENTRIES = frozenset({"tasks", "grids", "axes", "zip", "approaches", "exclude", "overrides", "evaluations", "tune"})
"""Keys of a grid that null takes out of one that it extends, and so it does their entries."""


@cached_over_words
def settings() -> tuple[str, ...]:
    """Return every key that a cell can have at its top."""
    return (*CellSpec.model_fields, *known_options())


def settings_of(node: Node) -> Node:
    """Return the settings of a cell among the entries of a mapping."""
    return Node(node.place, {key: value for key, value in node.value.items() if key in settings()}, node.keys)


def at_path(path: Sequence[str], value: Node) -> Node:
    """Return a value under each step of a dotted key."""
    for step in reversed(path):
        value = Node(value.place, {step: value}, {step: value.place})
    return value


def without_removed(node: Node, key: str = "", above: str = "") -> Node:
    """Return a grid without the entries that null took out of those that it was laid over."""
    if not isinstance(node.value, dict):
        return node
    return Node(
        node.place,
        {
            name: without_removed(inner, name, key)
            for name, inner in node.value.items()
            # The choices of a named axis are entries, too, and so are the parameters of `tune`.
            if not (
                inner.value is None
                and inner.replaces
                and (not ENTRIES.isdisjoint((name, key)) or above in ("axes", "tune"))
            )
        },
        node.keys,
        node.replaces,
    )
