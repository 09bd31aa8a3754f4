"""Conditions on a combination of a grid's choices, as `exclude`, `overrides` and `when` have them.

A condition is a mapping of factors or axes to words: `{kernel: rbf, symmetry: [symmetric, asymmetric]}` holds where all
of them agree, and a list is any of its words; what stands under `not` must not hold. A combination is looked at before
it is judged, so that one that no cell can have may be excluded; a key that it does not set has its default.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from kdx.errors import KdxError, shortened
from kdx.grid.cell_selector import as_word, default_word, factors, plain_number
from kdx.grid.field_types import ToList, as_list, not_allowed, unknown_name
from kdx.grid.source import Node
from kdx.grid.synonyms import did_you_mean


def _some_factors(value: Any) -> Any:
    if not isinstance(value, dict | WrittenCondition) or not value:
        raise not_allowed("{factor: value, …}")
    return value


def _factor(name: str, info: ValidationInfo) -> str:
    known = (*(info.context or ()), *factors())
    if name not in known:
        raise unknown_name("factor", (*known, "not"))
    return name


def _values(value: Any) -> Any:
    if isinstance(value, dict) or value == []:
        raise not_allowed("a value, or a list of them")
    return value


class WrittenCondition(BaseModel):
    """A condition as a file has it; the context of its validation is the axes of the grid that are no factors."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)
    __pydantic_extra__: dict[Annotated[str, AfterValidator(_factor)], Annotated[Any, AfterValidator(_values)]]
    unless: "Written | None" = Field(None, alias="not")
    """Another condition, which must not hold."""


Written = Annotated[WrittenCondition, BeforeValidator(_some_factors), WithJsonSchema({"$ref": "#/$defs/Condition"})]
SeveralWritten = Annotated[list[Written], ToList(as_list), Field(min_length=1)]


@dataclass(frozen=True)
class Combination:
    """One choice on each axis, before it is a cell."""

    labels: Mapping[str, str]
    """Axis → choice."""
    settings: tuple[Node, ...]
    """What the grid sets in it, each over the ones before."""

    def word(self, factor: str) -> str | None:
        """Return the word of a factor or of a named axis; None if the combination lacks the axis."""
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
    """A condition on combinations, with what was seen while the grid was expanded."""

    node: Node
    terms: Mapping[str, frozenset[str]]
    """Factor → the words of which it must have one."""
    unless: "Condition | None" = None
    held: list[bool] = field(default_factory=list)
    """Whether some combination fulfilled it: empty, or once true."""
    seen: dict[str, dict[str, None]] = field(default_factory=dict)
    """Factor → the words that combinations have."""

    @classmethod
    def of(cls, node: Node) -> "Condition":
        """Return the condition that stands at a node of a file, once `WrittenCondition` has checked it."""
        values = node.plain()
        several = {name: each if isinstance(each, list) else [each] for name, each in values.items() if name != "not"}
        terms = {name: frozenset(plain_number(as_word(name, each)) for each in several[name]) for name in several}
        return cls(node, terms, cls.of(node.value["not"]) if values.get("not") else None)

    def holds(self, combination: Combination) -> bool:
        """Return whether a combination fulfils it."""
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
        """The factors of the condition and of what must not hold."""
        return frozenset(self.terms) | (self.unless.factors if self.unless is not None else frozenset())

    def faults(self, settled: Collection[str] = ()) -> Iterator[KdxError]:
        """Yield a fault for each word that no combination has, and for a condition that none fulfils.

        All combinations must have been looked at.

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
