"""Families: the names of one axis, and what is known about each without importing its class."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import EnumType, StrEnum
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Generic, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from kdx.errors import KdxError, did_you_mean
from kdx.words import table
from kdx.words.component import Component
from kdx.words.literals import NOT_LITERAL, not_literal, place_of, read_source, stand_in
from kdx.words.option import Option, is_line, options_of


@dataclass(frozen=True)
class Definition:
    """The facts about every name; each family adds its own."""

    word: str
    title: str
    """The first line of the class's docstring."""
    options: tuple[Option, ...]
    """The keys that come with the name; a cell without the name lacks them."""

    @property
    def option_names(self) -> tuple[str, ...]:
        """Names of the options."""
        return tuple(option.name for option in self.options)


@dataclass(frozen=True)
class ComponentDefinition(Definition):
    """The facts about every component of an attention."""

    formula: str
    """The formula as printed in the source; empty if there is nothing to compute."""
    source: str
    """The paper, with its equation or section; empty if there is none."""
    takes: tuple[str, ...]
    """The axes that it uses, such as `encoding`; without the component they have no effect."""


D = TypeVar("D", bound=Definition)
C = TypeVar("C")


def imported(address: str) -> Any:
    """Return the object at `module:name`."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


class Family(Mapping[str, type[C]], Generic[C, D]):
    """The names of one axis: a mapping of name → class, which is imported when first needed.

    `definition` returns the facts about a name without importing its class.
    """

    def __init__(self, axis: str, definition: type[D], base: str) -> None:
        """Take the axis as a grid names it, its type of definition, and the address of its classes' base class."""
        self.axis = axis
        self.base = base
        self._definition = definition
        self.outside: dict[str, Component] = {}
        """Name → component, for classes outside kdx."""
        self._known: dict[str, D] = {}

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """Name → address of its class, `module:Class`, for the names of kdx."""
        return table.addresses(self.axis)

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Fact → the annotation of its values, for the facts of its definitions besides name, title and options."""
        return {name: kind for name, kind in get_type_hints(self._definition).items() if name not in _NO_FACTS}

    def __getitem__(self, word: str) -> type[C]:
        kind: type[C] = self.outside[word].load() if word in self.outside else imported(self.addresses[word])
        return kind

    def __iter__(self) -> Iterator[str]:
        yield from self.addresses
        yield from self.outside

    def __len__(self) -> int:
        return len(self.addresses) + len(self.outside)

    def __contains__(self, word: object) -> bool:
        return word in self.addresses or word in self.outside

    def add(self, component: Component) -> None:
        """Add a component, replacing an earlier one of the same name; raises what `define` does."""
        self._known[component.word] = self.define(component)
        self.outside[component.word] = component
        for forget in _OVER_WORDS:
            forget()

    def fits(self, component: Component) -> bool:
        """Return whether the class of a component is of this axis."""
        kind = stand_in(component)
        return kind is not None and issubclass(kind, table.stand_in(self.base))

    def define(self, component: Component) -> D:
        """Return the definition of a component without adding it.

        Raises:
            KdxError: the source lacks the class, or the class is of another axis, or a fact is not a literal.
        """
        kind = stand_in(component)
        if kind is None:
            classes, _ = read_source(component.trees[component.module], component.path)
            names = list(classes)
            problem, hint = f"no class `{component.name}`", did_you_mean(component.name, names)
            raise KdxError(problem, place=component.class_place, allowed=names or None, hint=hint)
        if not issubclass(kind, table.stand_in(self.base)):
            home, _, base = self.base.partition(":")
            problem = f"class `{component.name}` is no {base}, as every {self.axis} is"
            hint = (
                f"base classes are read by their names: from {home} import {base}, then class {component.name}({base})"
            )
            raise KdxError(problem, place=place_of(kind) or component.word, hint=hint)
        return self._define(component.word, kind)

    def modules(self, word: str) -> tuple[str, ...]:
        """Return the modules of kdx that compute a name: the module of its class, or those that a component imports."""
        if word in self.outside:
            return self.outside[word].kdx_modules
        return (self.addresses[word].partition(":")[0],)

    def definition(self, word: str) -> D:
        """Return the facts about a name.

        Raises:
            KeyError: this family has no such name.
        """
        if word not in self._known:
            self._known[word] = self._define(word, table.stand_in(self.addresses[word]))
        return self._known[word]

    def definitions(self) -> Iterator[D]:
        """Return the definitions of all names, in their order."""
        return map(self.definition, self)

    def _define(self, word: str, kind: type) -> D:
        facts: dict[str, Any] = {}
        missing = []
        for fact, allowed in self.facts.items():
            try:
                facts[fact] = _of_kind(getattr(kind, fact), allowed)
            except AttributeError:
                missing.append(f"`{fact}`")
            except TypeError:
                value = getattr(kind, fact)
                problem = f"`{fact}` is something else than {_described(allowed)}"
                if value is NOT_LITERAL or isinstance(value, Option):
                    problem = not_literal(fact)
                raise KdxError(problem, place=place_of(kind, fact)) from None
        if missing:
            raise KdxError(f"class `{kind.__name__}` lacks {', '.join(missing)}", place=place_of(kind))
        title = (kind.__doc__ or "").partition("\n")[0].removesuffix(".")
        try:
            return self._definition(word=word, title=title, options=tuple(options_of(kind).values()), **facts)
        except ValueError as error:
            raise KdxError(f"class `{kind.__name__}`: {error}", place=place_of(kind)) from None


Arguments = ParamSpec("Arguments")
R = TypeVar("R")
_OVER_WORDS: list[Callable[[], None]] = []


def cached_over_words(function: Callable[Arguments, R]) -> Callable[Arguments, R]:
    """Cache a function that depends on the known names; the cache is emptied when a component is added."""
    cached = cache(function)
    _OVER_WORDS.append(cached.cache_clear)
    return cached  # type: ignore[return-value]


_NO_FACTS = ("word", "title", "options")
_NAMED = {str: "a text of one line", bool: "True or False", int: "a whole number"}


def _of_kind(value: Any, kind: Any) -> Any:
    """Return a literal as the type of its fact; the name of a member of an enumeration becomes that member.

    Raises:
        TypeError: the literal is of another type.
    """
    inner = get_args(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum) and isinstance(value, str) and value in list(kind):
        return kind(value)
    if is_line(value) if kind is str else kind in (bool, int) and type(value) is kind:
        return value
    if get_origin(kind) is tuple and isinstance(value, tuple | list):
        return tuple(_of_kind(item, inner[0]) for item in value)
    if get_origin(kind) is Mapping and isinstance(value, dict):
        return {_of_kind(key, inner[0]): _of_kind(item, inner[1]) for key, item in value.items()}
    if hasattr(kind, "_fields") and isinstance(value, tuple | list) and len(value) == len(kind._fields):
        fields = zip(kind._fields, value, strict=True)
        return kind(*(_of_kind(item, kind.__annotations__[name]) for name, item in fields))
    raise TypeError("of another kind")


def _described(kind: Any, plural: bool = False) -> str:
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        return f"a tuple of {_described(inner[0], plural=True)}"
    if get_origin(kind) is Mapping:
        return f"a mapping of {_described(inner[0], plural=True)} to {_described(inner[1], plural=True)}"
    if hasattr(kind, "_fields"):
        fields = kind.__annotations__.items()
        inner_words = ((name, " | ".join(choices) if isinstance(choices, EnumType) else "") for name, choices in fields)
        return f"tuples ({', '.join(f'{name}: {words}' if words else name for name, words in inner_words)})"
    if kind in _NAMED:
        return "texts" if plural and kind is str else _NAMED[kind]
    return f"words of {', '.join(kind)}"
