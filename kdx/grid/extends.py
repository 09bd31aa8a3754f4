"""What lies under and over a grid's file: the grids that it extends, its presets, and the keys that `--set` sets."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from kdx.errors import Faults, KdxError, Place, shortened
from kdx.grid.cell_selector import factors, settings
from kdx.grid.model import GRID
from kdx.grid.shipped import find, names
from kdx.grid.source import LARGEST_FILE, NOTHING_SET, Node, at_path, no_value, read, read_value
from kdx.grid.synonyms import did_you_mean

ENTRIES = frozenset(
    {"tasks", "grids", "axes", "zip", "approaches", "layers", "exclude", "overrides", "evaluations", "tune", "tables"}
)
"""Keys of a grid that null takes out of one that it extends, and so it does their entries."""


def extended(path: Path, faults: list[KdxError], texts: dict[Path, str] | None = None) -> Node:
    """Return the file over those that it extends: mappings merge key by key, anything else replaces.

    Args:
        texts: takes the text of each of these files, the grid's first.
    """
    nodes: list[Node] = []
    seen: set[Path] = set()
    left = LARGEST_FILE
    while True:
        node = read(path, faults, most=left, texts=texts)
        left -= path.stat().st_size
        nodes.append(node)
        seen.add(path.resolve())
        if "extends" not in node.value:
            break
        path = _parent(node.value["extends"], path, seen)
    root = nodes.pop()
    for node in reversed(nodes):
        root = replace(root.without(("name",)), place=node.place).overlaid(node.without(("extends",)))
    return without_removed(root)


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


def preset_of(node: Node, task: Node | None) -> Node | None:
    """Return the settings of the preset that `node` names, a grid under `presets/`; None if it names none.

    Raises:
        KdxError: there is no such preset, or it is for another task.
    """
    name = node.value.get("preset")
    if name is None:
        return None
    known = presets()
    if name.value is None:
        raise no_value("preset", name.place, known)
    if name.value not in known:
        hint = did_you_mean(str(name.value), known)
        raise KdxError(f"unknown preset `{name}`", place=name.place, allowed=known, hint=hint)
    root = _shipped_preset(name.value)
    preset = replace(root.only(settings()), place=node.place)
    other = preset.value.get("task")
    if task and other and task.value != other.value:
        problem = f"preset `{name}` is for {other}, not for {task}"
        raise KdxError(problem, place=name.place, hint="take another preset")
    return preset


def presets() -> tuple[str, ...]:
    """Return the names of the shipped presets."""
    return tuple(grid.removeprefix("presets/") for grid in names() if grid.startswith("presets/"))


@cache
def _shipped_preset(name: str) -> Node:
    return extended(find(f"presets/{name}"), [])


def _parent(parent: Node, child: Path, seen: set[Path]) -> Path:
    """Return the file that `extends:` names.

    Raises:
        Faults: there is none, or it was seen before.
    """
    if not isinstance(parent.value, str):
        allowed = "the path of a grid, or the name of a shipped one"
        problem = KdxError(f"`{parent}` as extends", place=parent.place, allowed=allowed)
        raise Faults([problem if parent.value is not None else no_value("extends", parent.place, allowed)])
    try:
        path = find(parent.value, child.parent)
    except Faults as error:
        hint = error.faults[0].hint
        raise Faults([KdxError(f"cannot extend `{parent}`: no such grid", place=parent.place, hint=hint)]) from error
    if path.resolve() in seen:
        raise Faults([KdxError("a grid that extends itself", place=parent.place, hint="remove `extends:`")])
    return path


_OF_A_GRID = tuple(key for key in GRID if key != "extends")


def set_values(given: Sequence[str], faults: list[KdxError]) -> tuple[Node, Node]:
    """Return what `--set` sets in the grid itself, such as its seeds, and what in every cell.

    Args:
        given: each `key=value`; the last of a key wins.
    """
    grid = cell = NOTHING_SET
    for text in given:
        key, equals, value = text.partition("=")
        place = Place(f"--set {shortened(text)}", 0, 0)
        if not equals or not key:
            faults.append(KdxError("this sets nothing", place=place, allowed="key=value, such as training.steps=100"))
            continue
        node = read_value(value, place, faults)
        if node is None:
            continue
        first, *rest = key.split(".")
        known = factors() if first in settings() else (*factors(), *_OF_A_GRID)
        if first in _OF_A_GRID:
            # A factor, of an axis or of a search, is one key, dots and all.
            axes_of_part = first in ("tasks", "grids") and rest[1:2] == ["axes"]
            at = 2 if axes_of_part else {"axes": 0, "tune": 1}.get(first, len(rest))
            path = (first, *rest[:at], *filter(None, [".".join(rest[at:])]))
            grid = grid.overlaid(at_path(path, node))
        elif key in factors() or key in settings() or first in ("layers", "select"):
            cell = cell.overlaid(at_path((first, *rest), node))
        else:
            problem, hint = f"unknown key `{shortened(key)}`", did_you_mean(key, known)
            faults.append(KdxError(problem, place=place, allowed=known, hint=hint))
    return grid, cell
