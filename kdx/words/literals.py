"""Reads what a source declares of its classes in literals, from its syntax tree; none of the source is run."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from kdx.errors import KdxError, Place
from kdx.words import table
from kdx.words.component import Component
from kdx.words.option import Option, option

NOT_LITERAL: Any = object()
"""Placeholder for an expression that is not a literal."""


class ClassSource(NamedTuple):
    """The statement of a class."""

    name: str
    place: Place
    bases: tuple[str, ...]
    """The base classes that are given by a plain name."""
    title: str
    """The first line of the docstring, without its full stop."""
    assigned: dict[str, Any]
    """Attribute → a literal, an `Option`, or `NOT_LITERAL` for any other expression."""
    places: dict[str, Place]
    """Attribute → the place of its value."""


Source = tuple[dict[str, ClassSource], dict[str, tuple[str, str]]]
"""Name → class at the top level of a module; and imported name → its module, and the name there."""


def stand_in(component: Component) -> type | None:
    """Return a class with the base classes, facts and options of a component and nothing else; None if it has no class.

    So Python itself decides from which of several base classes a fact or an option comes. Base classes count if they
    are in the modules of the component or in kdx, whose classes `kdx.words.table` has; others are ignored.

    Raises:
        KdxError: an option or the base classes are declared wrongly; the error has the line.
    """
    sources = {module: read_source(tree, component.file(module)) for module, tree in component.trees.items()}
    known: dict[tuple[str, str], type | None] = {}

    def find(module: str, name: str) -> type | None:
        if (module, name) in known:
            return known[module, name]
        known[module, name] = None  # a class among its own base classes, or a name that imports itself
        if module.startswith("kdx."):
            address = table.find(module, name)
            known[module, name] = None if address is None else table.stand_in(address)
        elif module in sources:
            classes, imports = sources[module]
            if name in classes:
                known[module, name] = build(module, classes[name])
            elif name in imports:
                known[module, name] = find(*imports[name])
        return known[module, name]

    def build(module: str, declared: ClassSource) -> type:
        bases = [base for name in declared.bases if (base := find(module, name)) is not None]
        public = {name: value for name, value in declared.assigned.items() if not name.startswith("_")}
        body = {**public, "__doc__": declared.title, "_place": declared.place, "_places": declared.places}
        try:
            return type(declared.name, tuple(bases), body)
        except TypeError as error:
            raise KdxError(f"class `{declared.name}`: {error}", place=declared.place) from None

    return find(component.module, component.name)


def place_of(kind: type, fact: str | None = None) -> Place | None:
    """Return the place of a stand-in, or of one of its facts; None for a class of kdx."""
    owner = next((base for base in kind.__mro__ if fact in vars(base)), kind)
    places: dict[str, Place] = vars(owner).get("_places", {})
    return places.get(fact or "", vars(owner).get("_place"))


def read_source(tree: ast.Module, file: str) -> Source:
    """Return what a module declares of its classes; of two classes with one name the last, as when the source runs.

    Args:
        file: name of the file, for messages.

    Raises:
        KdxError: an option is declared with an argument that is not a literal, or with values that it cannot have.
    """
    imports = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    return {node.name: _class(node, file) for node in tree.body if isinstance(node, ast.ClassDef)}, imports


def _class(node: ast.ClassDef, file: str) -> ClassSource:
    bases = tuple(dict.fromkeys(base.id for base in node.bases if isinstance(base, ast.Name)))
    title = (ast.get_docstring(node) or "").partition("\n")[0].removesuffix(".")
    assigned: dict[str, Any] = {}
    places: dict[str, Place] = {}
    for statement, below in zip(node.body, (*node.body[1:], None), strict=True):
        for name, value in _assignment(statement):
            places[name] = Place(file, value.lineno, 1)
            if _is_option(value):
                try:
                    assigned[name] = replace(_option(name, value), title=_text(below))
                except (TypeError, ValueError) as error:
                    raise KdxError(str(error), place=places[name]) from None
            else:
                assigned[name] = _literal(value)
    return ClassSource(node.name, Place(file, node.lineno, 1), bases, title, assigned, places)


def _assignment(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value


def _literal(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NOT_LITERAL


def _is_option(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "option"


def _option(name: str, call: ast.expr) -> Option:
    """Return the option that a call of `kdx.words.option` declares.

    Raises:
        TypeError: an argument is not a literal, or of another type.
        ValueError: the default is not allowed.
    """
    assert isinstance(call, ast.Call)
    arguments = [_literal(value) for value in call.args]
    keywords = {str(keyword.arg): _literal(keyword.value) for keyword in call.keywords}
    if any(value is NOT_LITERAL for value in (*arguments, *keywords.values())):
        raise TypeError(not_literal(name))
    try:
        declared: Option = replace(option(*arguments, **keywords), name=name)
    except TypeError as error:
        raise TypeError(f"option `{name}`: {error}") from None
    try:
        declared.value(declared.default)
    except ValueError:
        raise ValueError(f"option `{name}` does not allow its default; allowed: {declared.allowed}") from None
    return declared


def not_literal(name: str) -> str:
    """Return the message about an attribute whose value is not a literal."""
    return f"`{name}` is not a literal, so it cannot be read without running the source"


def _text(statement: ast.stmt | None) -> str:
    """Return the text of a statement that is only a string, on one line."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
    return ""
