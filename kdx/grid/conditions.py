"""Conditions on a combination of a grid's choices, as `exclude`, `overrides` and `when` have them.

A condition is a mapping of factors or axes to words: `{kernel: rbf, symmetry: [symmetric, asymmetric]}` holds where all
of them agree, and a list is any of its words; what stands under `not` must not hold. A combination is looked at before
it is judged, so that one that no cell can have may be excluded; a key that it does not set has its default.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from kdx.errors import KdxError, Place, shortened
from kdx.grid.cell_selector import as_word, default_word, factors, plain_number
from kdx.grid.field_types import ToList, as_list, not_allowed
from kdx.grid.source import Node
from kdx.grid.synonyms import did_you_mean


def _some_factors(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        raise not_allowed("{factor: value, …}")
    return value


Written = Annotated[dict[str, Any], BeforeValidator(_some_factors), WithJsonSchema({"$ref": "#/$defs/Condition"})]
"""A condition as a file has it: factor or axis → word or list of words; `not` → another condition."""
SeveralWritten = Annotated[list[Written], ToList(as_list), Field(min_length=1)]


@dataclass(frozen=True)
class Combination:
    """One choice on each axis, before it is a cell."""

    labels: Mapping[str, str]
    """Axis → choice."""
    settings: tuple[Node, ...]
    """What the grid sets in it, each over the ones before."""

    def word(self, factor: str) -> str | None:
        """The word of a factor or of a named axis; None where the combination lacks the axis."""
        if factor not in factors():
            return self.labels.get(factor)
        path = factor.split(".")
        for node in reversed(self.settings):
            if (inner := node.inner(path)) is not None:
                return plain_number(as_word(factor, inner.plain()))
        default = default_word(factor)
        return None if default is None else plain_number(default)


@dataclass(frozen=True)
class Condition:
    """What a combination may fulfil, with what was seen while the grid was expanded."""

    node: Node
    terms: Mapping[str, frozenset[str]]
    """Factor → the words of which it must have one."""
    unless: "Condition | None" = None
    held: list[bool] = field(default_factory=list)
    """Whether some combination fulfilled it: empty, or once true."""
    seen: dict[str, dict[str, None]] = field(default_factory=dict)
    """Factor → the words that combinations have."""

    def holds(self, combination: Combination) -> bool:
        """Whether a combination fulfils it."""
        fits = True
        for factor, words in self.terms.items():
            word = combination.word(factor)
            if word is not None:
                self.seen.setdefault(factor, {})[word] = None
            fits = fits and word in words
        if self.unless is not None:
            fits = not self.unless.holds(combination) and fits
        if fits and not self.held:
            self.held.append(True)
        return fits

    @property
    def factors(self) -> frozenset[str]:
        """All that it asks about."""
        return frozenset(self.terms) | (self.unless.factors if self.unless is not None else frozenset())

    def faults(self, settled: Collection[str] = ()) -> Iterator[KdxError]:
        """Words that no combination has, after all of them were looked at: a typo, or a condition that says nothing.

        Args:
            settled: factors that the command line sets in every cell; a condition on them may well be idle.
        """
        if not self.factors.isdisjoint(settled):
            return
        typos = False
        for factor, words in self.terms.items():
            known = tuple(self.seen.get(factor, {}))
            for word in sorted(words.difference(known)):
                typos = True
                problem = f"no combination has {factor} = {shortened(word)}"
                place = self.node.at((factor,))
                yield KdxError(problem, place=place, allowed=known, hint=did_you_mean(word, known))
        if self.unless is not None:
            yield from self.unless.faults()
        if not typos and not self.held:
            yield KdxError("no combination fulfils all of this condition", place=self.node.place, hint="remove it")


class ConditionReader:
    """Reads the conditions of a grid.

    A condition that several sub-grids share is read once, so that it knows the words of all their combinations.
    """

    def __init__(self, axes: Collection[str], faults: list[KdxError]) -> None:
        """`axes`: those of the whole grid that have a name of their own."""
        self._axes = axes
        self._faults = faults
        self._read: dict[tuple[Place, str], Condition | None] = {}

    def read(self, node: Node) -> Condition | None:
        """A condition, or None where it is faulty."""
        key = (node.place, repr(node.plain()))
        if key not in self._read:
            self._read[key] = self._condition(node)
        return self._read[key]

    def _condition(self, node: Node) -> Condition | None:
        before = len(self._faults)
        if not isinstance(node.value, dict) or not node.value:
            self._faults.append(KdxError(f"`{node}` as a condition", place=node.place, allowed="{factor: value, …}"))
            return None
        terms, unless = {}, None
        known = (*self._axes, *factors())
        for key, value in node.value.items():
            if key == "not":
                unless = self.read(value)
            elif key not in known:
                problem, place = f"unknown factor `{shortened(key)}`", node.key((key,))
                hint = did_you_mean(key, known)
                self._faults.append(KdxError(problem, place=place, allowed=(*known, "not"), hint=hint))
            elif isinstance(value.value, dict) or value.value == []:
                problem = f"`{value}` as values of `{key}`"
                self._faults.append(KdxError(problem, place=value.place, allowed="a value, or a list of them"))
            else:
                words = value.value if isinstance(value.value, list) else [value]
                terms[key] = frozenset(plain_number(as_word(key, word.plain())) for word in words)
        return None if len(self._faults) > before else Condition(node, terms, unless)
