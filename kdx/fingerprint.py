"""The code that decides a number, found through its imports, as one hash: what changes nothing leaves it as it is.

A module counts as its syntax tree, without comments, docstrings and layout. Adding a kernel, a
task or a corpus changes no fingerprint: it adds a file, which only what uses it imports.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

# What the grid resolves is in the cell's id, so how it came to that decides nothing any more; the others compute no
# number of a run. Those that are read later are read by readers of text, models and evaluations.
_ELSEWHERE = (
    "kdx.grid",
    "kdx.tasks",
    "kdx.words",
    "kdx.vocabulary",
    "kdx.version",
    "kdx.errors",
    "kdx.files",
    "kdx.run_options",
    "kdx.checkpoint_names",
    "kdx.fingerprint",
    "kdx.cell_code",
)
_READ_LATER = (
    "kdx.grid.max_positions",
    "kdx.grid.placement",
    "kdx.grid.reading",
    "kdx.tasks.difficulty",
)


@dataclass(frozen=True)
class Fingerprint:
    """The code of some modules and of all that they import."""

    modules: Mapping[str, str]
    """Module → SHA-256 of `tree_text`, in alphabetical order."""

    @property
    def sha256(self) -> str:
        """The hash of all of them."""
        return hashlib.sha256(json.dumps(dict(self.modules)).encode()).hexdigest()


def fingerprint(roots: Iterable[str]) -> Fingerprint:
    """Return the code of these modules of kdx and of those that they import, at whatever depth."""
    return _fingerprint(frozenset(roots))


# Thousands of cells of a grid have a few sets of components.
@cache
def _fingerprint(roots: frozenset[str]) -> Fingerprint:
    modules: set[str] = set()
    left = list(roots)
    while left:
        module = left.pop()
        if module not in modules and _counts(module):
            modules.add(module)
            left += _code(module).imports
    return Fingerprint({module: _code(module).sha256 for module in sorted(modules)})


def _counts(module: str) -> bool:
    elsewhere = any(module == other or module.startswith(f"{other}.") for other in _ELSEWHERE)
    return module != "kdx" and (not elsewhere or module in _READ_LATER)


@dataclass(frozen=True)
class _Code:
    sha256: str
    imports: tuple[str, ...]


@cache
def _code(module: str) -> _Code:
    file = _file(module)
    assert file is not None, module
    tree = ast.parse(file.read_bytes())
    return _Code(hashlib.sha256(tree_text(tree).encode()).hexdigest(), tuple(dict.fromkeys(imports_of(tree))))


@cache
def _file(module: str) -> Path | None:
    """The file of a module of kdx, found without importing the packages around it; None if there is none."""
    path = Path(__file__).parent.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def tree_text(tree: ast.AST) -> str:
    """Return what counts of a source: not comments, docstrings and layout. It is the same in every version of Python.

    Raises:
        ValueError: it has a number that Python refuses to write in decimal.
        RecursionError: an expression is nested too deep.
    """
    return json.dumps(_plain(tree))


def _plain(node: Any) -> Any:
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields)
        # What is empty is left out: fields that a newer Python adds change nothing.
        return [type(node).__name__, *((name, _plain(value)) for name, value in fields if value not in (None, []))]
    if isinstance(node, list):
        return [_plain(child) for child in node if not _is_docstring(child)]
    return repr(node)


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Return the modules of kdx that are imported, the packages around them among them; not those for types alone."""
    for node in _blocks(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for steps in (name.split(".") for name in names if name.startswith("kdx.")):
            around = (".".join(steps[:count]) for count in range(2, len(steps) + 1))
            yield from (module for module in around if _file(module) is not None)


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """Return every statement, handler and case, at whatever depth, but not those under `if TYPE_CHECKING`."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, block, ()):
            if _is_for_types(inner):
                yield from _blocks(ast.Module(inner.orelse, []))
            else:
                yield inner
                yield from _blocks(inner)


def _is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
