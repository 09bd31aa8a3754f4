"""What a source says of its classes in literals, read from its syntax tree; nothing of it is run."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kdx.words import table
from kdx.words.option import Option, option

NOT_LITERAL: Any = object()
"""Stands for an expression that is no literal."""


class ClassSource(NamedTuple):
    """The statement of a class."""

    name: str
    line: int
    bases: tuple[str, ...]
    """The base classes that are named by a plain name."""
    title: str
    """The first line of the docstring, without its full stop."""
    assigned: dict[str, Any]
    """Attribute → a literal, an `Option`, or `NOT_LITERAL` for any other expression."""
    lines: dict[str, int]
    """Attribute → its line."""


class Source(NamedTuple):
    """The classes of a module, and where its imported names come from."""

    classes: dict[str, ClassSource]
    """Those at the top of the module; of two with one name the last, as when the source runs."""
    imports: dict[str, tuple[str, str]]
    """Name → the module and the name there."""


class DefinitionError(ValueError):
    """The facts of a class cannot be read, or the class is not of the required kind."""

    def __init__(self, problem: str, module: str, line: int = 1, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.module, self.line, self.hint = problem, module, line, hint


class StandIns:
    """The classes of a component, each as a class that has its base classes, facts and options and nothing else.

    So Python itself settles which of several base classes a fact or an option comes from. Base classes are those of the
    modules beside it and those of kdx, which `kdx.words.table` has; others count for nothing.
    """

    def __init__(self, tree: Callable[[str], ast.Module | None]) -> None:
        """Takes a function that returns the tree of a module, with absolute imports; None if it is none of them."""
        self._tree = tree
        self._sources: dict[str, Source | None] = {}
        self._found: dict[tuple[str, str], type | None] = {}

    def find(self, module: str, name: str) -> type | None:
        """Return the stand-in of a class that a module defines or imports; None if its source is not at hand.

        Raises:
            DefinitionError: an option or the base classes are declared wrongly.
        """
        followed = set()
        while (module, name) not in followed:
            followed.add((module, name))
            if module.startswith("kdx."):
                address = table.find(module, name)
                return None if address is None else table.stand_in(address)
            if module not in self._sources:
                tree = self._tree(module)
                self._sources[module] = None if tree is None else read_source(tree, module)
            source = self._sources[module]
            if source is not None and name in source.classes:
                return self._made(module, source.classes[name])
            if source is None or name not in source.imports:
                return None
            module, name = source.imports[name]
        return None

    def _made(self, module: str, declared: ClassSource) -> type | None:
        key = (module, declared.name)
        if key not in self._found:
            self._found[key] = None  # a class among its own base classes
            bases = [self.find(module, base) for base in declared.bases]
            public = {name: value for name, value in declared.assigned.items() if not name.startswith("_")}
            places = {"__module__": module, "_line": declared.line, "_lines": declared.lines}
            try:
                made = type(declared.name, tuple(filter(None, bases)), {**public, **places, "__doc__": declared.title})
            except TypeError as error:
                raise DefinitionError(f"class `{declared.name}`: {error}", module, declared.line) from None
            self._found[key] = made
        return self._found[key]


def place_of(kind: type, fact: str | None = None) -> tuple[str, int]:
    """Return the module and the line of a stand-in, or of one of its facts."""
    owner = next((base for base in kind.__mro__ if fact in vars(base)), kind)
    lines: Mapping[str, int] = vars(owner).get("_lines", {})
    return owner.__module__, lines.get(fact or "", vars(owner).get("_line", 1))


def read_source(tree: ast.Module, module: str) -> Source:
    """Return what a module says of its classes.

    Raises:
        DefinitionError: an option is declared with something else than literals, or with values that it cannot have.
    """
    imports = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    return Source({node.name: _class(node, module) for node in tree.body if isinstance(node, ast.ClassDef)}, imports)


def _class(node: ast.ClassDef, module: str) -> ClassSource:
    bases = tuple(dict.fromkeys(base.id for base in node.bases if isinstance(base, ast.Name)))
    title = (ast.get_docstring(node) or "").partition("\n")[0].removesuffix(".")
    assigned: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for statement, below in zip(node.body, (*node.body[1:], None), strict=True):
        for name, value in _assignment(statement):
            if _is_option(value):
                try:
                    assigned[name] = replace(_option(name, value), title=_text(below))
                except (TypeError, ValueError) as error:
                    raise DefinitionError(str(error), module, value.lineno) from None
            else:
                assigned[name] = _literal(value)
            lines[name] = value.lineno
    return ClassSource(node.name, node.lineno, bases, title, assigned, lines)


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
    """The option that a call of `kdx.words.option` declares.

    Raises:
        TypeError: an argument is no literal, or of another kind.
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
    """Return the message about an attribute whose value is no literal."""
    return f"`{name}` is no literal, so it cannot be read without running it"


def _text(statement: ast.stmt | None) -> str:
    """The text that stands alone as a statement, on one line."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
    return ""
