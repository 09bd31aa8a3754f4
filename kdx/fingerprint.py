"""The code that decides a number, found through its imports, as one hash: what changes nothing leaves it as it is.

A module counts by its syntax tree, without comments, docstrings and layout. Adding a kernel, a task or a corpus
changes no fingerprint: the tables that name them are left out, and of what they name only what is in use counts.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kdx.sources import read_source, source_of, statements

# They say which class or object a word stands for; who asks for a fingerprint names those that are in use.
_TABLES = frozenset(
    f"kdx.{table}"
    for table in (
        "attention.families",
        "attention.kernels",
        "attention.positions",
        "attention.values",
        "attention.filters",
        "attention.normalisers",
        "attention.encodings",
        "attention.mixers",
        "data.corpora",
    )
)
# What the grid resolves is in the cell's id, so how it came to that decides nothing any more; the others compute no
# number of a run. Those that are read later are read by readers of text, models and evaluations.
_ELSEWHERE = (
    "kdx.grid",
    "kdx.tasks",
    "kdx.vocabulary",
    "kdx.version",
    "kdx.definitions",
    "kdx.errors",
    "kdx.files",
    "kdx.machine",
    "kdx.run_options",
    "kdx.checkpoint_names",
    "kdx.fingerprint",
    "kdx.cell_code",
)
_DEEPEST = 20
"""Steps in the name of a module of kdx; a source from outside may import what is none."""
_READ_LATER = ("kdx.grid.max_positions", "kdx.grid.placement", "kdx.grid.reading")


@dataclass(frozen=True)
class Fingerprint:
    """Of some modules and all that they import."""

    modules: Mapping[str, str]
    """Module → SHA-256 of its syntax tree, in alphabetical order."""

    @property
    def sha256(self) -> str:
        """Of all of them."""
        return hashlib.sha256(json.dumps(dict(self.modules)).encode()).hexdigest()


def fingerprint(roots: Iterable[str]) -> Fingerprint:
    """Of these modules of kdx and those that they import, at whatever depth."""
    return _fingerprint(frozenset(roots))


# Thousands of cells of a grid have a few sets of parts.
@cache
def _fingerprint(roots: frozenset[str]) -> Fingerprint:
    found: set[str] = set()
    left = list(roots)
    while left:
        module = left.pop()
        if module not in found and _counts(module):
            found.add(module)
            left += _read(module).imports
    return Fingerprint({module: _read(module).sha256 for module in sorted(found)})


@dataclass(frozen=True)
class _Module:
    sha256: str
    imports: tuple[str, ...]


def _counts(module: str) -> bool:
    elsewhere = any(module == other or module.startswith(f"{other}.") for other in _ELSEWHERE)
    return module != "kdx" and module not in _TABLES and (not elsewhere or module in _READ_LATER)


@cache
def _read(module: str) -> _Module:
    sha256, named = read_source(module, __name__, _hash_and_imports)
    return _Module(sha256, tuple(dict.fromkeys(_modules(named))))


def _hash_and_imports(tree: ast.Module) -> list[Any]:
    sha256 = hashlib.sha256(tree_text(tree).encode("utf-8", "surrogatepass")).hexdigest()
    return [sha256, list(dict.fromkeys(_named(tree)))]


def tree_text(tree: ast.Module) -> str:
    """What of a source counts, as text: comments, docstrings and layout do not."""
    written: list[str] = []
    # Not recursive: an expression may be nested deeper than Python calls functions.
    left: list[Any] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, _Written):
            written.append(node)
        elif isinstance(node, ast.AST):
            left += reversed([_Written(f"({type(node).__name__}"), *_fields_of(node), _Written(")")])
        elif isinstance(node, list):
            inner = (one for one in node if not _is_docstring(one))
            left += reversed([_Written("["), *inner, _Written("]")])
        else:
            # Python refuses to write very large numbers in decimal.
            huge = isinstance(node, int) and node.bit_length() > LARGEST_DECIMAL
            written.append(hex(node) if huge else repr(node))
    return "\0".join(written)


LARGEST_DECIMAL = 10_000  # bits


class _Written(str):
    """A text that stands in what is written as it is."""


def _fields_of(node: ast.AST) -> Iterator[Any]:
    """The name and the value of each. What is empty is left out: fields that a newer Python adds change nothing."""
    for field in node._fields:
        value = getattr(node, field, None)
        if value is not None and value != [] and field != "type_comment":
            yield _Written(field)
            yield value


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def imports_of(tree: ast.AST) -> Iterator[str]:
    """The modules of kdx that are imported, packages around them among them; not those for types alone."""
    return _modules(_named(tree))


def _named(tree: ast.AST) -> Iterator[str]:
    """What imports name that may be a module of kdx: modules, and what is taken from them."""
    for node in statements(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name for name in names if name.startswith("kdx."))


def _modules(names: Iterable[str]) -> Iterator[str]:
    """The modules that are there among what is named, and the packages around them."""
    for name in names:
        steps = name.split(".")[: _DEEPEST + 1]
        around = (".".join(steps[:count]) for count in range(2, len(steps) + 1))
        yield from (module for module in around if _is_module(module))


def _is_module(name: str) -> bool:
    return name.startswith("kdx.") and source_of(name) is not None
