"""Modules as text: their names and their syntax trees."""

import ast

from kdx.fingerprint import tree_text


def module_of(path: str) -> str:
    """`a/b.py` is `a.b`, and `a/__init__.py` is `a`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def tree_of(text: str, path: str) -> ast.Module:
    """The syntax tree of a source, with each relative import made absolute.

    Args:
        path: of the module, relative to the folder that holds the outermost package.

    Raises:
        SyntaxError: it is no Python.
    """
    try:
        tree = ast.parse(text, path)
    except (ValueError, MemoryError, RecursionError) as error:
        raise SyntaxError(str(error) or "nested too deep", (path, 1, 1, None)) from error
    package = module_of(path).split(".")
    if not path.endswith("__init__.py"):
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            node.module, node.level = ".".join([*above, *([node.module] if node.module else [])]), 0
    return tree


def content_of(text: str, path: str) -> str:
    """Return what counts of a source, see `kdx.fingerprint.tree_text`.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = tree_of(text, path)
    try:
        return tree_text(tree)
    except (ValueError, RecursionError):  # too long a number, or too deep an expression
        return text
