"""Finds the custom components that a grid names, before its cells are made."""

from collections.abc import Collection, Iterator
from pathlib import Path

from kdx.components.find import find, find_any, installed
from kdx.components.registry import FAMILY_OF, add
from kdx.errors import KdxError, Place
from kdx.grid.fields import CellFields
from kdx.grid.sections import Data
from kdx.grid.source import Node
from kdx.tasks.corpora import BUILT_IN
from kdx.words.component import Component

_AXES = {"data.corpus" if axis == "corpus" else axis: axis for axis in FAMILY_OF}
"""Field → the axis whose names it holds; filters have a field for each attention."""
_NO_COMPONENTS = {"none", *BUILT_IN}


def find_components(root: Node, keys: Collection[str]) -> list[KdxError]:
    """Make every component that a grid names a word of its axis; a file is looked for beside the grid that names it.

    Args:
        keys: the keys of a grid, which no option of a component may be called.

    Returns:
        The faults of components, each in its source if that is at fault, or else where the grid names it first.
    """
    faults: list[KdxError] = []
    by_name: dict[str, Component] = {}
    looked_for: set[tuple[str, str, Path]] = set()
    for axis, node in _words(root, ""):
        word, family = node.value, FAMILY_OF[axis]
        # What --set gives has no file.
        folder = Path(node.place.file).parent if node.place.line else Path()
        known = word in _NO_COMPONENTS or (word in family and word not in family.outside)
        if known or (axis, word, folder) in looked_for:
            continue
        looked_for.add((axis, word, folder))
        try:
            component = find(axis, word, folder)
            if component is None:
                continue
            if by_name.setdefault(word, component).sha256 != component.sha256:
                raise _two_sources(component, by_name[word])
            add(component, taken=_taken(axis, keys), beside=by_name.values())
        except KdxError as error:
            # Where the source itself is at fault, its own place is the one to go to.
            place = error.place if isinstance(error.place, Place) else node.place
            problem = error.problem if error.place in (None, place) else f"{error.place}: {error.problem}"
            faults.append(KdxError(problem, place=place, allowed=error.allowed, hint=error.hint))
    return faults


def add_installed(keys: Collection[str]) -> list[KdxError]:
    """Make every component of an installed package a word of its axis; return the faults of the others.

    Args:
        keys: as in `find_components`.
    """
    faults: list[KdxError] = []
    for axis, word in installed():
        try:
            if (component := find(axis, word, Path())) is not None:
                add(component, taken=_taken(axis, keys))
        except KdxError as error:
            faults.append(error)
    return faults


def add_any(word: str, keys: Collection[str], folder: Path = Path()) -> Component:
    """Make the component that a word names, on whichever axis, a word of that axis.

    Args:
        keys: as in `find_components`.
        folder: where a file is looked for.

    Raises:
        KdxError: it cannot be a component of a grid.
    """
    component = find_any(word, folder)
    add(component, taken=_taken(component.axis, keys))
    return component


def _taken(axis: str, keys: Collection[str]) -> set[str]:
    fields = Data if axis == "corpus" else CellFields
    return {*fields.model_fields, *keys}


def _two_sources(component: Component, other: Component) -> KdxError:
    """A cell has one source under a word."""
    if not component.package:
        return KdxError(f"`{component.word}` is another file here than in the grid that this one extends")
    return KdxError(
        f"`{component.word}` is a {other.axis} of {other.package} as well, with another source",
        hint="rename one of them: a cell keeps one source under a name",
    )


def _words(node: Node, key: str) -> Iterator[tuple[str, Node]]:
    """Every text that stands where a word of an axis does, at whatever depth: under a key or on an axis of a grid."""
    axis = "filter" if key.startswith("filter.") else _AXES.get(key)
    if isinstance(node.value, dict):
        if key == "tasks":
            yield from (("task", Node(node.key((word,)), word)) for word in node.value)
        for name, inner in node.value.items():
            # `filter: {decoder-self: …}` and `data: {corpus: …}`; an axis may write `data.corpus`.
            below = f"{key}.{name}" if key in ("filter", "data") else name
            yield from _words(inner, below)
    elif isinstance(node.value, list):
        for inner in node.value:
            yield from _words(inner, key)
    elif axis is not None and isinstance(node.value, str):
        yield axis, node
