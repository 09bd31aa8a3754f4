'''How difficult the examples of a generated corpus are: what the grid may ask for, and by what its test tells it.

A corpus declares each key that it adds to `data` as an attribute of its class, with its description below, and in what
respects its examples differ:

    slices = ("pairs", "distance")

    pairs: int = option(8, minimum=1)
    """Of recall: pairs of an example at most."""

The grid reads them from the source, as syntax trees, and runs nothing of it.
'''

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kdx.data.corpora import BUILT_IN


@dataclass(frozen=True)
class CorpusOption:
    """A key of `data` that some corpora have."""

    name: str
    default: int | str
    minimum: int | None
    """Of a whole number; None: it is a word."""
    words: tuple[str, ...]
    """What a word may be; none: it is a whole number."""
    description: str


EDGES = (0, 1, *(2**power for power in range(1, 11)))
"""The greatest value of each slice: a value and its neighbours are told together, the more of them the greater it is,
so that there are never many slices."""


def slice_names(respect: str) -> tuple[str, ...]:
    """What the slices are called, in the order of `EDGES`: `pairs=0`, `pairs=1`, `pairs=2`, `pairs=3-4`, …"""
    below = (-1, *EDGES[:-1])
    return tuple(
        f"{respect}={low + 1}-{high}" if low + 1 < high else f"{respect}={high}"
        for low, high in zip(below, EDGES, strict=True)
    )


def option(default: Any, *, minimum: int | None = None, words: tuple[str, ...] = ()) -> Any:
    """The default; the rest is for `options_of`, which reads it where it is written."""
    return default


def options_of(corpus: str) -> tuple[CorpusOption, ...]:
    """What a corpus declares; a corpus that is not generated, or that nobody knows, declares nothing."""
    return tuple(found for node in _classes_of(corpus) for found in _declared(node))


@cache
def slices_of(corpus: str) -> tuple[str, ...]:
    """In what respects its test examples are told apart; none where it declares nothing."""
    return tuple(
        respect
        for node in _classes_of(corpus)
        for statement in node.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "slices"
        for respect in ast.literal_eval(statement.value)
    )


@cache
def all_options() -> dict[str, dict[str, CorpusOption]]:
    """Name → corpus → what that corpus declares under the name."""
    found: dict[str, dict[str, CorpusOption]] = {}
    for corpus in BUILT_IN.addresses:
        for one in options_of(corpus):
            found.setdefault(one.name, {})[corpus] = one
    return found


@cache
def _classes_of(corpus: str) -> tuple[ast.ClassDef, ...]:
    if corpus not in BUILT_IN.addresses:
        return ()
    spec = find_spec(BUILT_IN.addresses[corpus].partition(":")[0])
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    if "option(" not in source:
        return ()
    return tuple(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))


def _declared(node: ast.ClassDef) -> Iterator[CorpusOption]:
    for statement, after in zip(node.body, (*node.body[1:], None), strict=True):
        match statement:
            case ast.AnnAssign(
                target=ast.Name(id=name), value=ast.Call(func=ast.Name(id="option"), args=[default], keywords=keywords)
            ):
                told = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords}
                match after:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        description = " ".join(text.split())
                    case _:
                        description = ""
                yield CorpusOption(
                    name, ast.literal_eval(default), told.get("minimum"), told.get("words", ()), description
                )
