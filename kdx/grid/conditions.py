"""Conditions on a combination of a grid's choices, as `exclude`, `overrides` and `when` have them.

A condition is a mapping of factors or axes to words: `{kernel: rbf, symmetry: [symmetric, asymmetric]}` holds where all
of them agree, and a list is any of its words; what stands under `not` must not hold. A combination is looked at before
it is judged, so that one that no cell can have may be excluded; a key that it does not set has its default.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kdx.errors import KdxError, did_you_mean
from kdx.grid.cell_selector import as_word, default_word, factors
from kdx.grid.source import Node, shortened

MOST_CONDITIONS = 100


@dataclass(frozen=True)
class Combination:
    """One choice on each axis, before it is a cell."""

    labels: Mapping[str, str]
    """Axis → choice."""
    plain: Mapping[str, Any]
    """What the grid sets in it."""

    def word(self, factor: str) -> str | None:
        """The word of a factor or of a named axis; None where the combination lacks the axis."""
        if factor not in factors():
            return self.labels.get(factor)
        value: Any = self.plain
        for step in factor.split("."):
            if not isinstance(value, Mapping) or step not in value:
                return default_word(factor)
            value = value[step]
        return as_word(factor, value)


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

    def faults(self) -> Iterator[KdxError]:
        """Words that no combination has, after all of them were looked at: a typo, or a condition that says nothing."""
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


def read_condition(node: Node, axes: Collection[str], faults: list[KdxError]) -> Condition | None:
    """A condition, or None where it is faulty.

    Args:
        axes: the axes that have a name of their own.
    """
    before = len(faults)
    if not isinstance(node.value, dict) or not node.value:
        faults.append(KdxError(f"`{node}` as a condition", place=node.place, allowed="{factor: word, …}"))
        return None
    terms, unless = {}, None
    known = (*axes, *factors())
    for key, value in node.value.items():
        if key == "not":
            unless = read_condition(value, axes, faults)
        elif key not in known:
            problem, place = f"unknown factor `{shortened(key)}`", node.key((key,))
            faults.append(KdxError(problem, place=place, allowed=(*known, "not"), hint=did_you_mean(key, known)))
        elif isinstance(value.value, dict) or value.value == []:
            faults.append(KdxError(f"`{value}` as words of `{key}`", place=value.place, allowed="a word, or a list"))
        else:
            words = value.value if isinstance(value.value, list) else [value]
            terms[key] = frozenset(as_word(key, word.plain()) for word in words)
    return None if len(faults) > before else Condition(node, terms, unless)
