"""What the classes of a grid say of their attributes: the text below each, read from their source.

pydantic can read it too; but it goes through the source once for each class whenever a command starts.
"""

import ast
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path


@cache
def descriptions(kind: type) -> Mapping[str, str]:
    """Attribute → the text below it, on one line; with those of its base classes; of classes of kdx alone."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        classes = _classes(base.__module__) if base.__module__.startswith("kdx.") else {}
        body = classes[base.__name__].body if base.__name__ in classes else []
        for statement, after in pairwise(body):
            match statement, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = " ".join(text.split())
    return texts


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """The classes of a module, by name."""
    tree = ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
