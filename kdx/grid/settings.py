"""The settings of a cell among the keys of a grid."""

from collections.abc import Iterable, Sequence

from kdx.errors import KdxError, shortened
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.synonyms import did_you_mean
from kdx.grid.words import known_options
from kdx.words.family import cached_over_words


@cached_over_words
def settings() -> tuple[str, ...]:
    """Every key that a cell can have at its top."""
    return (*CellSpec.model_fields, *known_options())


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


def is_taken_out(node: Node | None) -> bool:
    """Whether a key is absent, or an extending grid wrote null over what it had."""
    return node is None or (node.value is None and node.replaces)


def mapping_of(node: Node | None, faults: list[KdxError], what: str) -> dict[str, Node]:
    """A mapping's entries; one whose value is null was taken out by an extending grid."""
    if node is None or is_taken_out(node):
        return {}
    if not isinstance(node.value, dict):
        faults.append(KdxError(f"`{node}` under `{what}`", place=node.place, allowed="a mapping"))
        return {}
    for key, inner in node.value.items():
        if inner.value is None and not inner.replaces:
            problem = f"`{shortened(key)}` under `{what}` is empty, and takes nothing out of an extended grid"
            faults.append(KdxError(problem, place=node.key((key,)), hint="write what it is, or remove the line"))
    return {key: inner for key, inner in node.value.items() if inner.value is not None}


def list_of(node: Node | None, faults: list[KdxError], what: str, *, most: int) -> list[Node]:
    """A list's items; a single mapping is a list of one."""
    if node is None or is_taken_out(node):
        return []
    items = [node] if isinstance(node.value, dict) else node.value
    if not isinstance(items, list) or not items:
        faults.append(KdxError(f"`{node}` under `{what}`", place=node.place, allowed="a list of mappings"))
        return []
    if len(items) > most:
        faults.append(KdxError(f"{len(items):,} items under `{what}`", place=node.place, allowed=f"at most {most}"))
        return []
    for item in items:
        if not isinstance(item.value, dict) or not item.value:
            faults.append(KdxError(f"`{item}` under `{what}`", place=item.place, allowed="a mapping"))
    return [item for item in items if isinstance(item.value, dict) and item.value]
