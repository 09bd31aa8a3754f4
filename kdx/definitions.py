"""What kdx knows of a word of the study, said once: by the class that the word stands for.

A class says it in attributes with literal values:

    class RBF(KernelFunction):
        formula = "k(q, k) = exp(-|q - k|² / T√D)"
        source = "Tsai et al. 2019, Table 2"
        options = ("temperature",)

What it does not say itself is what the base classes of its family say. Definitions are read from the source, as syntax
trees, and nothing of it is run; so a grid is checked, and a word explained, without importing torch.
"""

import ast
from collections import UserDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar


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
    options: tuple[str, ...]
    """The keys of a cell that this word makes use of; elsewhere they are without effect."""


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

    def __init__(self, axis: str, bases: tuple[str, ...], definition: type[D], classes: Mapping[str, str]) -> None:
        """Takes the axis as a grid names it, addresses of the base classes, the nearest last, and of each word's class.

        An address is `module:Class`, such as `kdx.attention.kernels.rbf:RBF`.
        """
        self.axis = axis
        self._bases = bases
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
            names = frozenset(field.name for field in fields(self._definition)) - {"word", "title"}
            facts: dict[str, Any] = {"word": word}
            for one in (*self._bases, self._classes[word]):
                facts |= _facts(one, names)
            self._known[word] = self._definition(**facts)
        return self._known[word]

    def definitions(self) -> Iterator[D]:
        """Those of all words, in their order."""
        return map(self.definition, self)


def _facts(address: str, names: frozenset[str]) -> dict[str, Any]:
    """What a class says of itself: its title, and the literals that it gives to these names."""
    module, _, name = address.partition(":")
    node = _classes_in(module)[name]
    found: dict[str, Any] = {"title": (ast.get_docstring(node) or "").partition("\n")[0].removesuffix(".")}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target in names:
                found[target] = ast.literal_eval(value)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target in names:
                found[target] = ast.literal_eval(value)
    return found


@cache
def _classes_in(module: str) -> dict[str, ast.ClassDef]:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
