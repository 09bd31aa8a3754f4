"""The factors of a cell and the words that each knows, read from the sources of their declarations.

`kdx.grid.cell_selector` says the same of the declarations themselves, whose models pydantic has to build: that takes
longer than a shell may wait for its completions. A test holds the two equal.
"""

import ast
from collections.abc import Iterator
from enum import StrEnum
from importlib.resources import files

import kdx.vocabulary
from kdx.attention.families import FAMILIES, options_of_words
from kdx.tasks import TASKS
from kdx.tasks.corpora import options_of_corpora

_LEFT_OUT = ("select", "parts")
_WITHOUT = "none"


def factor_words() -> dict[str, tuple[str, ...]]:
    """Factor → the words that it knows; none for one that takes numbers or any text."""
    nodes = (node for module in ("fields", "sections") for node in _tree(module).body)
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    found = dict(_fields(classes["CellFields"], classes, ""))
    options = [*options_of_words().values(), *(one for task in TASKS.definitions() for one in task.options)]
    of_corpora = [(f"data.{name}", one) for name, declared in options_of_corpora().items() for one in declared]
    for name, option in [*((one.name, one) for one in options), *of_corpora]:
        words = dict.fromkeys([*found.get(name, ()), *option.words])
        words.pop(_WITHOUT, None)
        found[name] = (*words, _WITHOUT) if words else ()
    return found


def _fields(
    section: ast.ClassDef, classes: dict[str, ast.ClassDef], prefix: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in section.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        name = f"{prefix}{_alias(node.value) or node.target.id}"
        names = [one.id for one in ast.walk(node.annotation) if isinstance(one, ast.Name)]
        inner = next((classes[one] for one in names if one in classes and _is_section(classes[one])), None)
        if node.target.id.startswith("_") or name in _LEFT_OUT:
            continue
        if inner is not None:
            yield from _fields(inner, classes, f"{name}.")
        else:
            words = dict.fromkeys(_words(node.annotation))
            words.pop(_WITHOUT, None)
            yield name, (*words, _WITHOUT) if words else ()


def _words(annotation: ast.expr) -> Iterator[str]:
    families = {family.axis: family for family in (*FAMILIES, TASKS)}
    names = {f"{axis}s".upper(): family for axis, family in families.items()}
    for one in ast.walk(annotation):
        if isinstance(one, ast.Name):
            kind = getattr(kdx.vocabulary, one.id, None)
            if isinstance(kind, type) and issubclass(kind, StrEnum):
                yield from kind
            elif one.id in names:
                yield from names[one.id]


def _alias(default: ast.expr | None) -> str | None:
    """The name that a grid writes for a field."""
    for keyword in default.keywords if isinstance(default, ast.Call) else ():
        if keyword.arg == "alias" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return None


def _is_section(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id in ("Section", "WithOptions") for base in node.bases)


def _tree(module: str) -> ast.Module:
    return ast.parse(files("kdx").joinpath("grid", f"{module}.py").read_text(encoding="utf-8"))
