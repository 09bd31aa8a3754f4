"""What a source says of its classes in literals, as plain values; nothing of it is run.

An outline can be kept as JSON (`kdx.sources`). A literal is kept with its kind, since JSON has one kind of list.
"""

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdx.sources import statements


class NoLiteral(NamedTuple):
    """What stands where a literal was expected."""

    line: int


class OptionCall(NamedTuple):
    """A call of `kdx.definitions.option`."""

    arguments: list[Any]
    """Literals, and `NoLiteral` for whatever else."""
    keywords: dict[str, Any]
    text: str
    """The docstring below it."""


class Assigned(NamedTuple):
    """A name that the body of a class sets."""

    name: str
    line: int
    value: Any
    """A literal, an `OptionCall`, or `NoLiteral` for whatever else."""


class ClassOutline(NamedTuple):
    """What the statement of a class says."""

    name: str
    line: int
    bases: list[str]
    """Those that are plain names."""
    title: str
    """The first line of the docstring, without its full stop."""
    plain: list[Any]
    """What `assigned` gives, as JSON has it."""

    @property
    def assigned(self) -> Iterator[Assigned]:
        """The names that its body sets, in their order."""
        return (Assigned(name, line, _value(value)) for name, line, value in self.plain)


class Outline(NamedTuple):
    """What a source says of its classes, and where the names come from that it imports."""

    classes: dict[str, ClassOutline]
    """Those at the top of the module; of two of one name the last, as when the source runs."""
    imports: dict[str, tuple[str, str]]
    """Name → the module and the name there."""


class _Other:
    """A literal of a kind that no definition has, such as bytes."""


def read(tree: ast.Module) -> Any:
    """The outline of a source in plain values, see `outline`."""
    classes = {node.name: _class(node) for node in tree.body if isinstance(node, ast.ClassDef)}
    imports: dict[str, list[str]] = {}
    # Imports are statements; to walk through all expressions takes longer than to parse them.
    for inner in statements(tree):
        if isinstance(inner, ast.ImportFrom) and inner.module:
            for alias in inner.names:
                imports[alias.asname or alias.name] = [inner.module, alias.name]
    return {"classes": classes, "imports": imports}


def outline(plain: Any) -> Outline:
    """The outline that `read` gave in plain values."""
    classes = {name: ClassOutline(name, *one) for name, one in plain["classes"].items()}
    return Outline(classes, {name: (module, there) for name, (module, there) in plain["imports"].items()})


def _class(node: ast.ClassDef) -> list[Any]:
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    title = (ast.get_docstring(node) or "").partition("\n")[0].removesuffix(".")
    texts = [_text(statement) for statement in (*node.body[1:], None)]
    return [
        node.lineno,
        bases,
        title,
        [
            [target, value.lineno, _plain(value, text)]
            for statement, text in zip(node.body, texts, strict=True)
            for target, value in _assignment(statement)
        ],
    ]


def _text(statement: ast.stmt | None) -> str:
    """The text that stands alone as a statement, on one line."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
    return ""


def _assignment(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value):
            yield target, value
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
            yield target, value


def _plain(value: ast.expr, text: str) -> Any:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "option":
        keywords = {str(one.arg): _plain_literal(one.value) for one in value.keywords}
        return {"option": [[*map(_plain_literal, value.args)], keywords, text]}
    return _plain_literal(value)


def _plain_literal(value: ast.expr) -> Any:
    try:
        return _tagged(ast.literal_eval(value))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return {"no literal": value.lineno}


def _tagged(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return {"tuple": [*map(_tagged, value)]}
        case list():
            return {"list": [*map(_tagged, value)]}
        case dict():
            return {"dict": [[_tagged(key), _tagged(inner)] for key, inner in value.items()]}
    return {"other": None}


def _value(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    ((kind, inner),) = plain.items()
    match kind:
        case "tuple":
            return tuple(map(_value, inner))
        case "list":
            return [*map(_value, inner)]
        case "dict":
            return {_value(key): _value(one) for key, one in inner}
        case "no literal":
            return NoLiteral(inner)
        case "option":
            arguments, keywords, text = inner
            return OptionCall([*map(_value, arguments)], {key: _value(one) for key, one in keywords.items()}, text)
    return _Other()
