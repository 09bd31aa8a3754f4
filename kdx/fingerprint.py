"""One hash of the code that a number depends on, found through its imports; changes without effect do not change it.

A module counts as its syntax tree, without comments, docstrings and layout. Adding a kernel, a task or a corpus changes
no fingerprint: it adds a file, which only its users import.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, TypeGuard

# The result of resolving a grid is in the cell's id, so the code that resolves it does not count; the other modules
# compute no number of a run.
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
        """The hash of all modules."""
        return hashlib.sha256(json.dumps(dict(self.modules)).encode()).hexdigest()


def fingerprint(roots: Iterable[str]) -> Fingerprint:
    """Return the code of these modules of kdx and of those that they import, at any depth."""
    return _fingerprint(frozenset(roots))


# The thousands of cells of a grid have only a few sets of components.
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
    """Return the file of a module of kdx, without importing the packages around it; None if there is none."""
    path = Path(__file__).parent.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def tree_text(tree: ast.AST) -> str:
    """Return the parts of a source that count: no comments, docstrings or layout. Python's version does not matter.

    Raises:
        ValueError: the source has a number that Python refuses to write in decimal.
        RecursionError: an expression is nested too deep.
    """
    return _text(tree)


def _text(node: Any) -> str:
    """Return a part of a tree as JSON: a node as its type and fields, another value as a string."""
    # Text at once: lists for json.dumps would take twice as long, and each command that compares code waits for this.
    if isinstance(node, ast.AST):
        text = f'["{type(node).__name__}"'
        for name in node._fields:
            value = getattr(node, name, None)
            # Empty fields are left out, so fields that a newer Python adds change nothing.
            if value is not None and value != []:
                text += f', ["{name}", {_text(value)}]'
        return f"{text}]"
    if isinstance(node, list):
        return f"[{', '.join([_text(child) for child in node if not _is_docstring(child)])}]"
    return encode_basestring_ascii(repr(node))


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of kdx that are imported, with the packages around them; not imports for types only."""
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
    """Yield every statement, handler and case, at any depth, except under `if TYPE_CHECKING`."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, block, ()):
            if _is_for_types(inner):
                yield from _blocks(ast.Module(inner.orelse, []))
            else:
                yield inner
                yield from _blocks(inner)


def _is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
