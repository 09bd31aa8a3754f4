"""A grid's dimensions multiplied out into cells.

A cell is the grid's settings with one bundle of each dimension laid over them, the last dimension's on top. Axes,
approaches and tasks are all dimensions: a bundle of an axis over a factor sets that factor, a bundle of a named axis or
of approaches sets several. A preset lies under all that the grid sets; a bundle's preset replaces the grid's. A
condition looks at a combination before it is judged, so that one that no cell can have may be excluded; then overrides
are laid over those that they are for.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import product
from math import prod

from pydantic import ValidationError

from kdx.errors import KdxError, by_place, shortened
from kdx.grid.cell_selector import as_word, default_word, factors, lacks, leaves, options, plain_number
from kdx.grid.identity import cell_id
from kdx.grid.messages import located
from kdx.grid.plan import PlannedCell
from kdx.grid.source import NOTHING_SET, Node
from kdx.grid.spec import CellSpec
from kdx.grid.synonyms import did_you_mean
from kdx.tasks.corpora import DIFFICULTIES

MOST_LOOKED_AT = 20_000
"""Largest number of faults, repeated ones included; after them the other cells are not checked."""
_UNWRITTEN = "a condition sees what the grid writes; name the key that this one follows from, such as `position`"


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
            return plain_number(self.labels[factor]) if factor in self.labels else None
        path = factor.split(".")
        for node in reversed(self.settings):
            if (inner := node.inner(path)) is not None:
                return plain_number(as_word(factor, inner.plain()))
        default = default_word(factor)
        if factor.startswith("data.") and factor in options():
            # Corpora share names of options, but not their defaults.
            corpus = self.word("data.corpus") or ""
            own = DIFFICULTIES.definition(corpus).options if corpus in DIFFICULTIES else ()
            default = next((as_word(factor, each.default) for each in own if f"data.{each.name}" == factor), "none")
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
                unwritten = _UNWRITTEN if known == ("none",) else None
                yield KdxError(problem, place=place, allowed=known, hint=did_you_mean(word, known) or unwritten)
        if self.unless is not None:
            yield from self.unless.faults()
        if not typos and not self.held:
            yield KdxError("no combination fulfils all of this condition", place=self.node.place, hint="remove it")


@dataclass(frozen=True)
class Bundle:
    """One choice of a dimension, and the settings it stands for."""

    labels: Mapping[str, str]
    """Axis → choice: of the dimension, or of each factor that varies with it."""
    settings: Node
    preset: Node | None = None
    """Settings that lie under all that the grid sets."""


@dataclass(frozen=True)
class Dimension:
    """An axis of the product."""

    name: str
    bundles: tuple[Bundle, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The axes by which its bundles are labelled."""
        return tuple(self.bundles[0].labels) if self.bundles else (self.name,)

    @cached_property
    def decides(self) -> frozenset[str]:
        """The axes and the factors that it sets."""
        return frozenset(self.names).union(*(paths(bundle.settings) for bundle in self.bundles))


def paths(settings: Node) -> frozenset[str]:
    """Return the factors that settings set."""
    return frozenset(path for path, _ in leaves(settings.plain()))


@dataclass(frozen=True)
class SubGrid:
    """Settings and the dimensions that vary over them."""

    base: Node
    dimensions: tuple[Dimension, ...]
    preset: Node | None = None
    """Settings that lie under all that the grid sets, unless a bundle has its own."""
    exclude: tuple[Condition, ...] = ()
    overrides: tuple[tuple[Condition, Node], ...] = ()
    """Conditions, each with the settings that are laid over the combinations that fulfil it."""
    on_top: Node = NOTHING_SET
    """Settings that are laid over all others in every cell."""

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes by which its cells are labelled."""
        return tuple(name for dimension in self.dimensions for name in dimension.names)

    @property
    def size(self) -> int:
        """Combinations, those that are excluded among them."""
        return prod(len(dimension.bundles) for dimension in self.dimensions)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its conditions on combinations."""
        return (*self.exclude, *(condition for condition, _ in self.overrides))

    def combinations(self) -> Iterator[tuple[Mapping[str, str], tuple[Node, ...]]]:
        """Yield axis → choice of every combination that is not excluded, and what it sets, each over the ones before.

        The last dimension runs fastest.
        """
        for bundles in product(*(dimension.bundles for dimension in self.dimensions)):
            labels = {name: label for bundle in bundles for name, label in bundle.labels.items()}
            combination = Combination(labels, self._settings(bundles))
            # All conditions look at it, so that each learns which words there are.
            if [condition for condition in self.exclude if condition.holds(combination)]:
                continue
            overrides = [settings for condition, settings in self.overrides if condition.holds(combination)]
            yield labels, self._settings(bundles, overrides) if overrides else combination.settings

    def _settings(self, bundles: Sequence[Bundle], overrides: Sequence[Node] = ()) -> tuple[Node, ...]:
        presets = [preset for preset in (self.preset, *(bundle.preset for bundle in bundles)) if preset]
        return (*presets[-1:], self.base, *(bundle.settings for bundle in bundles), *overrides, self.on_top)


def cells_of(sub_grids: Sequence[SubGrid], faults: list[KdxError]) -> list[PlannedCell]:
    """Return every cell; each fault goes to `faults` once, unless it is there already.

    Two choices that give the same cell are both kept, and share its id and its runs; unless they have the same labels,
    as the choices of an option that no word of the cell has.

    Raises:
        Faults: more cells are wrong than are looked at, even if in the same places.
    """
    cells: list[PlannedCell] = []
    planned: set[tuple[object, ...]] = set()
    seen = {str(fault) for fault in faults}
    error_count, may_be_misspelt = 0, bool(faults)
    for sub_grid in sub_grids:
        before = len(cells), error_count
        for chosen, settings in sub_grid.combinations():
            node = reduce(Node.overlaid, settings)
            try:
                spec = CellSpec.model_validate(node.plain())
            except ValidationError as error:
                error_count += error.error_count()
                for fault in located(error, node, CellSpec, may_be_misspelt=may_be_misspelt):
                    if str(fault) not in seen:
                        seen.add(str(fault))
                        faults.append(fault)
                if error_count > MOST_LOOKED_AT:
                    raise by_place(faults) from error
                continue
            # An option that no name of the cell has is no choice.
            labels = {name: "none" if lacks(spec, name) else label for name, label in chosen.items()}
            cell = PlannedCell(cell_id(spec), len(cells), labels, spec, settings)
            if (key := (cell.id, *labels.items())) not in planned:
                planned.add(key)
                cells.append(cell)
        if sub_grid.exclude and sub_grid.size and before == (len(cells), error_count):
            first = sub_grid.dimensions[0] if sub_grid.dimensions else None
            where = f" of {first.name} `{first.bundles[0].labels[first.name]}`" if first and len(sub_grids) > 1 else ""
            problem, place = f"`exclude` leaves no combination{where}", sub_grid.exclude[0].node.place
            faults.append(KdxError(problem, place=place, hint="exclude less"))
    if all(sub_grid.size for sub_grid in sub_grids):  # else words may be missing because a sub-grid is faulty
        _check_conditions(sub_grids, faults)
    return cells


def _check_conditions(sub_grids: Sequence[SubGrid], faults: list[KdxError]) -> None:
    """Refuse conditions that say nothing of the grid as a whole, of whatever sub-grid."""
    settled = {path for part in sub_grids for path in paths(part.on_top)}
    distinct = {id(condition): condition for sub_grid in sub_grids for condition in sub_grid.conditions}
    for condition in distinct.values():
        faults.extend(condition.faults(settled))
