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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any, Generic, TypeVar


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
    formula: str
    """As printed in the source; empty where there is nothing to compute."""
    source: str
    """The paper, with its equation or section; empty for what has none."""
    takes: tuple[str, ...]
    """The axes that this word makes use of, such as `encoding`; elsewhere they are without effect."""
    options: tuple[Option, ...]
    """The keys that it brings along; a cell without such a word does not have them."""

    @property
    def option_names(self) -> tuple[str, ...]:
        """Of the keys that it brings along."""
        return tuple(one.name for one in self.options)


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


class Family(Mapping[str, type[C]], Generic[C, D]):
    """The words of one axis: word → class, imported when it is first asked for.

    `definition` tells what is known of a word without importing its class.
    """

    def __init__(self, axis: str, definition: type[D], classes: Mapping[str, str]) -> None:
        """Takes the axis as a grid names it, and the address of each word's class.

        An address is `module:Class`, such as `kdx.attention.kernels.rbf:RBF`.
        """
        self.axis = axis
        self._definition = definition
        self._classes = classes
        self._known: dict[str, D] = {}

    def __getitem__(self, word: str) -> type[C]:
        found: type[C] = imported(self._classes[word])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def __contains__(self, word: object) -> bool:
        return word in self._classes

    def address(self, word: str) -> str:
        """Of the word's class: `module:Class`."""
        return self._classes[word]

    def definition(self, word: str) -> D:
        """What is known of a word.

        Raises:
            KeyError: it is no word of this family.
        """
        if word not in self._known:
            module, _, name = self._classes[word].partition(":")
            lineage = _lineage(module, name)
            names = frozenset(field.name for field in fields(self._definition)) - {"word", "title", "options"}
            facts: dict[str, Any] = {}
            options: dict[str, Option] = {}
            for node in reversed(lineage):
                facts |= _literals(node, names)
                options |= _options(node)
            title = (ast.get_docstring(lineage[0]) or "").partition("\n")[0].removesuffix(".")
            self._known[word] = self._definition(word=word, title=title, options=tuple(options.values()), **facts)
        return self._known[word]

    def definitions(self) -> Iterator[D]:
        """Those of all words, in their order."""
        return map(self.definition, self)


def _lineage(module: str, name: str) -> list[ast.ClassDef]:
    """A class and, behind it, its base classes, as far as they are of kdx."""
    found = _class(module, name)
    if found is None:
        return []
    where, node = found
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return list(dict.fromkeys([node, *(one for base in bases for one in _lineage(where, base))]))


def _class(module: str, name: str) -> tuple[str, ast.ClassDef] | None:
    """A class with the module where it stands: `module` itself, or one that it imports the name from."""
    tree = _tree(module)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module, node
    for imports in ast.walk(tree):
        if isinstance(imports, ast.ImportFrom) and (imports.module or "").startswith("kdx."):
            for alias in imports.names:
                if name == (alias.asname or alias.name):
                    return _class(str(imports.module), alias.name)
    return None


def _literals(node: ast.ClassDef, names: frozenset[str]) -> dict[str, Any]:
    """The literals that the body of a class gives to these names."""
    return {target: ast.literal_eval(value) for target, value in _assigned(node) if target in names}


def _options(node: ast.ClassDef) -> dict[str, Option]:
    found = {}
    following = [*node.body[1:], None]
    texts = {
        id(statement): after.value.value
        for statement, after in zip(node.body, following, strict=True)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
    }
    for statement in node.body:
        for name, value in _assigned(ast.ClassDef(node.name, [], [], [statement], [])):
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "option":
                arguments = [ast.literal_eval(one) for one in value.args]
                keywords = {str(one.arg): ast.literal_eval(one.value) for one in value.keywords}
                text = " ".join(texts.get(id(statement), "").split())
                found[name] = replace(option(*arguments, **keywords), name=name, title=text)
    return found


def _assigned(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                yield target, value
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                yield target, value


@cache
def _tree(module: str) -> ast.Module:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
