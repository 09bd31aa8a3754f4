"""What kdx knows of a word of the study, said once: by the class that the word stands for.

A class says it in attributes with literal values:

    class Cauchy(KernelFunction):
        formula = "k(q, k) = 1 / (1 + |q - k|² / b²)"
        source = "Cauchy 1853"
        bandwidth: float = option(1.0, above=0)
        'b, in units of a feature.'

What it does not say itself is what its base classes say. Definitions are read from the source, as syntax trees, and
nothing of it is run; so a grid is checked, and a word explained, without importing torch.
"""

import ast
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from math import isfinite
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, get_args, get_origin, get_type_hints

from kdx.outline import ClassOutline, NoLiteral, OptionCall, Outline, outline, read
from kdx.sources import read_source, source_of


@dataclass(frozen=True)
class Option:
    """A key of the grid that a word brings along: a word, a whole number or a number, as its default is."""

    default: Any
    words: tuple[str, ...] = ()
    """What it may be; a number where there are none."""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    none: bool = False
    """Whether it may be `none` as well."""
    neutral: bool = False
    """Whether it was added to a word that stood before: at its default the cell is the one that it was without it."""
    name: str = ""
    title: str = ""
    """What it is, with its unit."""

    def __post_init__(self) -> None:
        limits = [limit for limit in (self.minimum, self.above, self.below) if limit is not None]
        if not isinstance(self.words, tuple) or not all(map(_is_plain, self.words)):
            raise TypeError("words are a tuple of texts")
        if not self.words and type(self.default) not in (int, float):
            raise TypeError("the default is a number, or one of the words")
        if not all(type(limit) in (int, float) and abs(limit) <= _LARGEST for limit in limits):
            raise TypeError(f"minimum, above and below are numbers up to {_LARGEST}")
        if not isinstance(self.none, bool) or not isinstance(self.neutral, bool):
            raise TypeError("none and neutral are True or False")

    @property
    def allowed(self) -> str:
        """What it may be, in words."""
        if self.words:
            return ", ".join(self.words)
        limits = [] if self.minimum is None else [f"from {self.minimum:g} on"]
        limits += [] if self.maximum is None else [f"up to {self.maximum:g}"]
        limits += [] if self.above is None else [f"above {self.above:g}"]
        limits += [] if self.below is None else [f"below {self.below:g}"]
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} {', '.join(limits)}".rstrip() + (", or none" if self.none else "")

    def value(self, given: Any) -> Any:
        """What is given, as a cell holds it: 2 is 2.0 where the default is 1.0.

        Raises:
            ValueError: it is not allowed.
        """
        if self.none and given in (None, "none"):
            return "none"
        if self.words:
            if isinstance(given, str) and given in self.words:
                return str(given)
        elif type(given) is int or (type(given) is float and type(self.default) is float and isfinite(given)):
            outside = (
                (self.minimum is not None and given < self.minimum)
                or (self.maximum is not None and given > self.maximum)
                or (self.above is not None and given <= self.above)
                or (self.below is not None and given >= self.below)
            )
            if not outside and abs(given) < _LARGEST:
                return type(self.default)(given)
        raise ValueError(f"{self.name}: {given!r}; allowed: {self.allowed}")


def option(
    default: Any,
    *,
    words: tuple[str, ...] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    none: bool = False,
    neutral: bool = False,
) -> Any:
    """Declares an option in the body of a word's class; its text is the docstring below it.

    All arguments are literals, see `Option`. In an instance the name stands for the value that the cell has.
    """
    return Option(default, words, minimum, maximum, above, below, none, neutral)


def options_of(part: type) -> dict[str, Option]:
    """The options that a class declares, its base classes' among them, by name."""
    declared = {name: one for base in reversed(part.__mro__) for name, one in vars(base).items()}
    return {name: replace(one, name=name) for name, one in declared.items() if isinstance(one, Option)}


@dataclass(frozen=True)
class Definition:
    """What is known of every word; each family adds to it."""

    word: str
    title: str
    """The first line of the class's docstring."""
    options: tuple[Option, ...]
    """The keys that it brings along; a cell without such a word does not have them."""

    @property
    def option_names(self) -> tuple[str, ...]:
        """Of the keys that it brings along."""
        return tuple(one.name for one in self.options)


@dataclass(frozen=True)
class PartDefinition(Definition):
    """What is known of every part of an attention."""

    formula: str
    """As printed in the source; empty where there is nothing to compute."""
    source: str
    """The paper, with its equation or section; empty for what has none."""
    takes: tuple[str, ...]
    """The axes that this word makes use of, such as `encoding`; elsewhere they are without effect."""


_LARGEST = 2**53  # beyond it a float is no longer every whole number

D = TypeVar("D", bound=Definition)
C = TypeVar("C")


class Imported(UserDict[str, Any]):
    """Names → objects, each imported from its address when it is first asked for.

    An address is `module:name`, such as `kdx.data.corpora.multi30k:TEXT`.
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self.addresses = dict(addresses)
        super().__init__(addresses)

    def __getitem__(self, name: str) -> Any:
        found = self.data[name]
        if isinstance(found, str):
            found = self.data[name] = imported(found)
        return found


def imported(address: str) -> Any:
    """What stands at `module:name`."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


class DefinitionError(ValueError):
    """What a class says of itself cannot be read, or it is not of the kind that it should be."""

    def __init__(self, problem: str, module: str, line: int = 1, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.module, self.line, self.hint = problem, module, line, hint


class _Fault(ValueError):
    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line, self.problem = line, problem


class PartFromOutside(Protocol):
    """A word whose class lies outside kdx, see `kdx.own_parts`."""

    @property
    def word(self) -> str:
        """As a cell has it."""

    @property
    def module(self) -> str:
        """Where its class stands."""

    @property
    def name(self) -> str:
        """Of its class."""

    @property
    def sha256(self) -> str:
        """Of its source."""

    @property
    def kdx_modules(self) -> tuple[str, ...]:
        """The modules of kdx that its source imports."""

    def tree(self, module: str) -> ast.Module | None:
        """The source of its module or of one that comes with it, with absolute imports; None: it is of neither."""

    def load(self) -> type:
        """Runs the source, and gives the class."""


class Family(Mapping[str, type[C]], Generic[C, D]):
    """The words of one axis: word → class, imported when it is first asked for.

    `definition` tells what is known of a word without importing its class.
    """

    def __init__(self, axis: str, definition: type[D], base: str, classes: Mapping[str, str]) -> None:
        """Takes the axis as a grid names it, the address of the class of all, and that of each word's class.

        An address is `module:Class`, such as `kdx.attention.kernels.rbf:RBF`.
        """
        self.axis = axis
        self.base = base
        self._definition = definition
        self._classes = classes
        self._outside: dict[str, PartFromOutside] = {}
        self._known: dict[str, D] = {}

    def __getitem__(self, word: str) -> type[C]:
        found: type[C] = self._outside[word].load() if word in self._outside else imported(self._classes[word])
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._classes
        yield from self._outside

    def __len__(self) -> int:
        return len(self._classes) + len(self._outside)

    def __contains__(self, word: object) -> bool:
        return word in self._classes or word in self._outside

    @property
    def outside(self) -> Mapping[str, PartFromOutside]:
        """The words that came from outside."""
        return self._outside

    def address(self, word: str) -> str:
        """Of the class of a word of kdx: `module:Class`."""
        return self._classes[word]

    def add(self, part: PartFromOutside) -> D:
        """Takes a word from outside, in place of one of the same name that came before it; gives its definition.

        Raises:
            DefinitionError: kdx has such a word; or the source has no such class, or one of another kind, or a
                definition that is no literal.
        """
        definition = self.define(part)
        self._outside[part.word] = part
        self._known[part.word] = definition
        for forget in _OVER_WORDS:
            forget()
        return definition

    def fits(self, part: PartFromOutside) -> bool:
        """Whether its class is of this axis."""
        return self.base in _lineage(part.module, part.name, part.tree)

    def define(self, part: PartFromOutside) -> D:
        """The definition of a word from outside, which is not added yet; raises what `add` does."""
        if part.word in self._classes:
            raise DefinitionError(f"kdx itself has a {self.axis} `{part.word}`", part.module)
        return self._define(part.word, part.module, part.name, part.tree)

    def modules(self, word: str) -> tuple[str, ...]:
        """The modules of kdx that decide what the word computes: that of its class, or those that it imports."""
        if word in self._outside:
            return self._outside[word].kdx_modules
        return (self._classes[word].partition(":")[0],)

    def definition(self, word: str) -> D:
        """What is known of a word.

        Raises:
            KeyError: it is no word of this family.
        """
        if word not in self._known:
            module, _, name = self._classes[word].partition(":")
            self._known[word] = self._define(word, module, name)
        return self._known[word]

    def definitions(self) -> Iterator[D]:
        """Those of all words, in their order."""
        return map(self.definition, self)

    def _define(self, word: str, module: str, name: str, tree: "_Tree | None" = None) -> D:
        lineage = _lineage(module, name, tree)
        if not lineage:
            raise DefinitionError(f"no class `{name}`", module)
        if self.base not in lineage:
            where, node = next(iter(lineage.items()))
            home, _, base = self.base.partition(":")
            problem = f"class `{name}` is no {base}, as every {self.axis} is"
            hint = f"base classes are read by their names: from {home} import {base}, then class {name}({base})"
            raise DefinitionError(problem, where.partition(":")[0], node.line, hint)
        kinds = {name: kind for name, kind in get_type_hints(self._definition).items() if name not in _NO_FACTS}
        facts: dict[str, Any] = {}
        options: dict[str, Option] = {}
        for address, node in reversed(lineage.items()):
            try:
                facts |= _literals(node, kinds)
                options |= _options(node)
            except _Fault as fault:
                raise DefinitionError(fault.problem, address.partition(":")[0], fault.line) from None
        if lacking := [f"`{fact}`" for fact in kinds if fact not in facts]:
            where, node = next(iter(lineage.items()))
            raise DefinitionError(f"class `{name}` lacks {', '.join(lacking)}", where.partition(":")[0], node.line)
        title = next(iter(lineage.values())).title
        try:
            return self._definition(word=word, title=title, options=tuple(options.values()), **facts)
        except ValueError as error:
            where, node = next(iter(lineage.items()))
            raise DefinitionError(f"class `{name}`: {error}", where.partition(":")[0], node.line) from None


Arguments = ParamSpec("Arguments")
R = TypeVar("R")
_OVER_WORDS: list[Callable[[], None]] = []


def cached_over_words(function: Callable[Arguments, R]) -> Callable[Arguments, R]:
    """`functools.cache` for what depends on the words that there are: forgotten when one comes from outside."""
    cached = cache(function)
    _OVER_WORDS.append(cached.cache_clear)
    return cached  # type: ignore[return-value]


_Tree = Callable[[str], ast.Module | None]


def _lineage(module: str, name: str, tree: _Tree | None) -> dict[str, ClassOutline]:
    """Address → class: the class and, behind it, its base classes, as far as their sources are to be had."""
    lineage: dict[str, ClassOutline] = {}
    outlines = _Outlines(tree)
    left = [(module, name)]
    while left:
        found = outlines.find(*left.pop())
        if found is not None and (address := f"{found[0]}:{found[1].name}") not in lineage:
            lineage[address] = found[1]
            left += ((found[0], base) for base in reversed(found[1].bases))
    return lineage


class _Outlines:
    """The outlines of modules: of kdx, and of the source of one part from outside, each gone through once."""

    def __init__(self, tree: _Tree | None) -> None:
        self._tree = tree
        self._read: dict[str, Outline | None] = {}

    def find(self, module: str, name: str) -> tuple[str, ClassOutline] | None:
        """A class with the module where it stands: `module` itself, or one that it imports the name from."""
        seen: set[tuple[str, str]] = set()
        while (module, name) not in seen:
            seen.add((module, name))
            if module not in self._read:
                self._read[module] = self._outline(module)
            found = self._read[module]
            if found is None:
                return None
            if name in found.classes:
                return module, found.classes[name]
            module, name = found.imports.get(name, (module, name))
        return None

    def _outline(self, module: str) -> Outline | None:
        tree = self._tree(module) if self._tree else None
        return outline(read(tree)) if tree else _outline(module)


_NO_FACTS = ("word", "title", "options")
_KINDS = {str: "a text of one line", bool: "True or False", int: "a whole number"}


def _literals(node: ClassOutline, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """The literals that the body of a class gives to these names, each of its kind."""
    found = {}
    for target, line, value in node.assigned:
        if target in kinds:
            try:
                found[target] = _of_kind(_literal(value, target, line), kinds[target])
            except TypeError:
                problem = f"`{target}` is something else than {_described(kinds[target])}"
                raise _Fault(line, problem) from None
    return found


def _of_kind(value: Any, kind: Any) -> Any:
    """A literal as the annotation of a fact has it: a word of an enumeration is its member.

    Raises:
        TypeError: it is of another kind.
    """
    of = get_args(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum) and value in list(kind):
        return kind(value)
    if _is_plain(value) if kind is str else kind in (bool, int) and type(value) is kind:
        return value
    if get_origin(kind) is tuple and isinstance(value, tuple):
        return tuple(_of_kind(one, of[0]) for one in value)
    if get_origin(kind) is Mapping and isinstance(value, dict):
        return {_of_kind(name, of[0]): _of_kind(one, of[1]) for name, one in value.items()}
    if hasattr(kind, "_fields") and isinstance(value, tuple) and len(value) == len(kind._fields):
        return kind(*(_of_kind(one, kind.__annotations__[name]) for name, one in zip(kind._fields, value, strict=True)))
    raise TypeError("of another kind")


def _described(kind: Any, many: bool = False) -> str:
    of = get_args(kind)
    if get_origin(kind) is tuple:
        return f"a tuple of {_described(of[0], many=True)}"
    if get_origin(kind) is Mapping:
        return f"a mapping of {_described(of[0], many=True)} to {_described(of[1], many=True)}"
    if hasattr(kind, "_fields"):
        return f"tuples ({', '.join(kind._fields)})"
    if kind in _KINDS:
        return "texts" if many and kind is str else _KINDS[kind]
    return f"words of {', '.join(kind)}"


def _is_plain(text: Any) -> bool:
    """Whether it is a text of one line, without signs that drive a terminal or that no file can hold."""
    return isinstance(text, str) and text.isprintable()


def _literal(value: Any, name: str, line: int) -> Any:
    if isinstance(value, NoLiteral | OptionCall):
        line = value.line if isinstance(value, NoLiteral) else line
        raise _Fault(line, f"`{name}` is no literal, so it cannot be read without running it")
    return value


def _options(node: ClassOutline) -> dict[str, Option]:
    found = {}
    for name, line, value in node.assigned:
        if isinstance(value, OptionCall):
            arguments = [_literal(one, name, line) for one in value.arguments]
            keywords = {key: _literal(one, name, line) for key, one in value.keywords.items()}
            try:
                declared = option(*arguments, **keywords)
            except TypeError as error:
                raise _Fault(line, f"option `{name}`: {error}") from None
            try:
                declared.value(declared.default)
            except ValueError:
                problem = f"option `{name}` does not allow its default; allowed: {declared.allowed}"
                raise _Fault(line, problem) from None
            found[name] = replace(declared, name=name, title=value.text)
    return found


@cache
def _outline(module: str) -> Outline | None:
    """Of a module of kdx; None: it is of none."""
    if not module.startswith("kdx.") or source_of(module) is None:
        return None
    return outline(read_source(module, "kdx.outline", read))
