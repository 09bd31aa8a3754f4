"""Compares the cells of a table: which differ, by how much, and which are not distinguishable.

Cells are compared where their numbers compare (`kdx.report.table.comparable`), by the means and the spreads of the two
cells alone (`kdx.report.statistics.estimates.contrast`), perplexities by their logarithm.

A table asks two questions, each with its own correction. Which cells differ from the declared baseline? Holm's
correction covers every such difference of the table. Which cells are worse than the best of their column? The best is
chosen by the same runs, and the cell that is truly the best must not lose to any of the others by chance, so one-sided
p-values are multiplied by the number of comparisons in the column (comparisons with the best, Hsu 1984; by Bonferroni's
correction, which assumes nothing about the spreads). Each column makes a promise of its own, that its best is marked.

Where a rule decides how many seeds a cell has, each comparison is over the seeds of its last look, which both cells
have, and allows for all looks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import hypot, sqrt
from types import MappingProxyType

from kdx.grid.cell_selector import plain_number
from kdx.grid.plan import TableSpec
from kdx.grid.sections import Margin
from kdx.grid.seeds import SeedRule
from kdx.grid.table_layout import Address, reads_evaluations
from kdx.report.selection.cells import Cell
from kdx.report.statistics.estimates import LEVEL, Estimate, contrast
from kdx.report.statistics.looks import Look
from kdx.report.statistics.metric import Metric
from kdx.report.statistics.multiple_comparisons import holm
from kdx.report.statistics.power import detectable_errors, minimum_detectable_difference
from kdx.report.statistics.until_decided import Followed, PValues, until_decided
from kdx.report.table.comparable import ComparableCells
from kdx.report.table.layout import Layout

BaselineOf = Callable[[Address], Address | None]
"""Returns the place of the cell that a cell is compared with; None if there is none, or it is the cell itself."""


class Mark(StrEnum):
    """How a cell compares with the best comparable cell of its column."""

    BEST = "best"
    """No mean is better."""
    NOT_DISTINGUISHABLE = "not distinguishable"
    """Its mean is not distinguishable from that of the best."""
    UNTESTED = "untested"
    """It could not be compared with the best."""


@dataclass(frozen=True)
class Difference:
    """The gain of a cell over another: positive is better; for perplexities in nats."""

    at: Address
    against: Address
    metric: Metric
    n: int
    """The smaller number of seeds of the two cells."""
    estimate: Estimate | None
    """The difference of the means; None where a cell has a single seed and so no spread."""
    p: float | None = None
    """The p-value of no difference, corrected over the table; or of the cell being no worse than the best, corrected
    over its column."""
    margin: float | None = None
    """The difference below which the two cells count as equal, on the same scale; None if the grid states none."""
    p_equivalent: float | None = None
    """The p-value of a difference of the margin or more."""
    followed: Followed | None = None
    """How far it came until it was decided; None where no rule adds seeds for it."""

    @property
    def significant(self) -> bool:
        """Whether the cells differ at the level of 0.05 after the correction."""
        return self.p is not None and self.p < 1 - LEVEL

    @property
    def equivalent(self) -> bool:
        """Whether the cells are equal within the margin at the level of 0.05."""
        return self.p_equivalent is not None and self.p_equivalent < 1 - LEVEL


@dataclass(frozen=True)
class Group:
    """Cells of a table whose numbers compare."""

    metric: Metric
    task: str
    places: tuple[Address, ...]
    cells: int
    """Number of different cells with a score."""
    seeds: int
    """The smallest number of seeds of a compared cell; 0 where no two cells can be compared."""
    spread: tuple[float, float, float] | None
    """Standard deviations over seeds of the compared cells: lowest, root mean square, highest; for perplexities in
    nats."""
    comparisons: int
    """Number of comparisons for which a p-value is corrected: all of the table with a baseline, or those of a column
    with its best, the most of any column."""
    sides: int
    """2 where cells are compared with a baseline, 1 where with the best."""
    over_documents: float = 0.0
    """The error of a difference that more seeds leave, since it is over documents, root mean square over the
    differences; 0 where the errors are over seeds alone."""
    fixed: bool = True
    """Whether the number of seeds was fixed beforehand, as detectable differences suppose."""

    @property
    def minimum_detectable_difference(self) -> float | None:
        """The smallest difference that one comparison of two typical cells can show; for perplexities in nats."""
        return self._detectable(1)

    @property
    def corrected_minimum_detectable_difference(self) -> float | None:
        """The same after the correction for all comparisons."""
        return self._detectable(self.comparisons)

    def _detectable(self, comparisons: int) -> float | None:
        if self.spread is None or not self.fixed:
            return None
        comparisons = max(1, comparisons)
        over_seeds = self.spread[1] * minimum_detectable_difference(self.seeds, comparisons, sides=self.sides)
        return hypot(over_seeds, self.over_documents * detectable_errors(comparisons, sides=self.sides))


@dataclass(frozen=True)
class Comparisons:
    """How the cells of a table compare."""

    groups: tuple[Group, ...]
    differences: tuple[Difference, ...]
    """Each cell compared with its baseline, or with the best of its column where the table declares none."""
    marks: Mapping[Address, Mark]
    """How cells compare with the best of their column; a cell without a comparison has no mark."""


def compare(
    layout: Layout, asked: TableSpec, comparable: Sequence[ComparableCells], rule: SeedRule | None = None
) -> Comparisons:
    """Every comparison that a table makes.

    Args:
        comparable: the cells of the layout, grouped so that the numbers within a group compare.
        rule: what decides how many seeds a cell has, if a rule does.
    """
    best = _best_of_columns(comparable)
    with_best = _comparisons_with_best(comparable, best)
    from_best = _differences(comparable, lambda at: best[at][0] if at in best else None, {}, rule)
    from_best = _worse_than_best(from_best, with_best)
    found, number, sides = from_best, None, 1
    if asked.baseline:
        followed = follow(layout, asked, comparable, rule) if rule and decides(asked, layout) else {}
        found = _differences(comparable, baseline_of(layout, asked), asked.margin, rule, followed)
        found = _corrected(found, len(followed))
        number, sides = max(sum(one.p is not None for one in found), len(followed)), 2
    return Comparisons(
        groups=tuple(
            _group(
                one,
                max((with_best.get(at, 0) for at in one.cells), default=0) if number is None else number,
                sides,
                found,
                fixed=rule is None,
            )
            for one in comparable
        ),
        differences=found,
        marks=_marks(layout, best, from_best),
    )


def baseline_of(layout: Layout, asked: TableSpec) -> BaselineOf:
    """Finds the place with the baseline's words, and with the words of the cell itself for all other factors."""
    rows = {tuple(map(plain_number, header)): index for index, header in enumerate(layout.rows)}
    columns = {tuple(map(plain_number, header)): index for index, header in enumerate(layout.columns)}

    def replaced(factors: Sequence[str], header: Sequence[str]) -> tuple[str, ...]:
        words = (asked.baseline.get(factor, word) for factor, word in zip(factors, header, strict=True))
        return tuple(map(plain_number, words))

    def baseline(at: Address) -> Address | None:
        row = rows.get(replaced(asked.rows, layout.rows[at[0]]))
        column = columns.get(replaced(asked.columns, layout.columns[at[1]]))
        return None if row is None or column is None or (row, column) == at else (row, column)

    return baseline


def decides(asked: TableSpec, layout: Layout) -> bool:
    """Whether a rule adds seeds until the comparisons of this table with its baseline are decided.

    Evaluations are made of runs that have ended, so no seed waits for them.
    """
    return bool(asked.baseline) and not (layout.evaluations and reads_evaluations(asked))


def follow(
    layout: Layout, asked: TableSpec, comparable: Sequence[ComparableCells], rule: SeedRule
) -> dict[Address, Followed]:
    """How far each planned comparison with the baseline came, whether its cells have scores yet or not."""
    baseline = baseline_of(layout, asked)
    pairs: list[tuple[Address, Address]] = []
    for at, cell in layout.places.items():
        against = baseline(at)
        if against is not None and against in layout.places and layout.places[against].id != cell.id:
            pairs.append((at, against))
    group_of = {at: group for group in comparable for at in group.cells}

    def test(index: int, look: Look) -> PValues | None:
        at, against = pairs[index]
        group = group_of[at]
        cell, other = (layout.places[one].until(look.n) for one in (at, against))
        if group is not group_of[against] or not (cell.scores and other.scores):
            return None
        margin = asked.margin.get(group.metric.name)
        found = _difference(group.metric, (at, cell), (against, other), margin, look)
        if found.estimate is None:
            return PValues(1.0)
        return PValues(found.estimate.p, 1.0 if found.p_equivalent is None else found.p_equivalent)

    ended = [min(layout.places[at].ended, layout.places[against].ended) for at, against in pairs]
    found = until_decided(rule.min, rule.max, ended, test)
    return {at: one for (at, _), one in zip(pairs, found, strict=True)}


def _group(
    comparable: ComparableCells, comparisons: int, sides: int, differences: Sequence[Difference], *, fixed: bool
) -> Group:
    """Summarises comparable cells; a cell that stands in several places counts once."""
    distinct = list({cell.id: cell for cell in comparable.cells.values() if cell.scores}.values())
    compared = [cell for cell in distinct if cell.compared]
    sds = [one.sd for cell in compared if (one := cell.compared) and one.sd is not None]
    able = len(compared) > 1
    its = [one.estimate for one in differences if one.at in comparable.cells and one.estimate]
    return Group(
        metric=comparable.metric,
        task=comparable.task,
        places=tuple(comparable.cells),
        cells=len(distinct),
        seeds=min(len(cell.scores) for cell in compared) if able else 0,
        spread=(min(sds), hypot(*sds) / sqrt(len(sds)), max(sds)) if able else None,
        comparisons=comparisons,
        sides=sides,
        over_documents=hypot(*(one.over_documents for one in its)) / sqrt(len(its)) if its else 0.0,
        fixed=fixed,
    )


def _differences(
    comparable: Sequence[ComparableCells],
    baseline: BaselineOf,
    margins: Mapping[str, Margin],
    rule: SeedRule | None = None,
    followed: Mapping[Address, Followed] = MappingProxyType({}),
) -> tuple[Difference, ...]:
    """Each cell compared with its baseline where both have scores, still without p-values.

    Args:
        margins: metric → margin.
        rule: what decides how many seeds a cell has, if a rule does.
        followed: place → how far its comparison came under the rule; any other is over the seeds that both cells have.
    """
    found = []
    for group in comparable:
        for at, cell in group.cells.items():
            against = baseline(at)
            other = group.cells.get(against) if against is not None else None
            if against is None or other is None or other.id == cell.id or not (cell.scores and other.scores):
                continue
            margin, its = margins.get(group.metric.name), followed.get(at)
            if rule is None:
                found.append(_difference(group.metric, (at, cell), (against, other), margin))
                continue
            n = its.n if its else min(cell.ended, other.ended, rule.max)
            look = Look(n, rule.min, rule.max) if n >= rule.min else None
            placed, from_ = (at, cell.until(n)), (against, other.until(n))
            found.append(replace(_difference(group.metric, placed, from_, margin, look), followed=its))
    return tuple(found)


def _corrected(found: Sequence[Difference], planned: int = 0) -> tuple[Difference, ...]:
    """The differences with p-values that are corrected for all of them.

    Args:
        planned: the number of comparisons, where those that cannot be made yet count too.
    """
    tested = {index: one.estimate.p for index, one in enumerate(found) if one.estimate}
    others = [1.0] * (planned - len(tested))
    p = dict(zip(tested, holm([*tested.values(), *others]) if tested else (), strict=False))
    return tuple(replace(one, p=p.get(index)) for index, one in enumerate(found))


def _best_of_columns(comparable: Sequence[ComparableCells]) -> dict[Address, tuple[Address, ...]]:
    """Place → the places of the best comparable mean of its column, several when means are equal.

    Cells with a single seed, or with a score that is not finite, are left out; a column with fewer than two other cells
    has no best.
    """
    found: dict[Address, tuple[Address, ...]] = {}
    for group in comparable:
        columns: dict[int, dict[Address, Cell]] = {}
        for at, cell in group.cells.items():
            if cell.scores:
                columns.setdefault(at[1], {})[at] = cell
        for its in columns.values():
            means = {at: cell.metric.gain(cell.compared.mean) for at, cell in its.items() if cell.compared}
            if len({its[at].id for at in means}) > 1:
                highest = max(means.values())
                best = tuple(at for at, mean in means.items() if mean == highest)
                found |= dict.fromkeys(its, best)
    return found


def _comparisons_with_best(
    comparable: Sequence[ComparableCells], best: Mapping[Address, tuple[Address, ...]]
) -> dict[Address, int]:
    """Place → the number of comparisons with the best of its column: one fewer than the column has comparable cells."""
    number: dict[Address, int] = {}
    for group in comparable:
        columns: dict[int, set[str]] = {}
        for at, cell in group.cells.items():
            if at in best and cell.compared:
                columns.setdefault(at[1], set()).add(cell.id)
        number |= {at: len(columns[at[1]]) - 1 for at in group.cells if at[1] in columns}
    return number


def _worse_than_best(found: Sequence[Difference], comparisons: Mapping[Address, int]) -> tuple[Difference, ...]:
    """Differences from the best with their p-values, one-sided and multiplied by the comparisons of the column."""
    return tuple(
        replace(one, p=None if one.estimate is None else min(1.0, comparisons[one.at] * one.estimate.p_below))
        for one in found
    )


def _marks(
    layout: Layout, best: Mapping[Address, tuple[Address, ...]], from_best: Sequence[Difference]
) -> dict[Address, Mark]:
    """Marks the best of each column, cells that are not distinguishable from it, and cells that have no test."""
    compared = {one.at: one for one in from_best}
    ids = {those: {layout.places[one].id for one in those} for those in best.values()}
    marks = {}
    for at, cell in layout.places.items():
        if at not in best:
            continue
        difference = compared.get(at)
        if cell.id in ids[best[at]]:
            marks[at] = Mark.BEST
        elif difference is None or difference.p is None:
            if cell.value is not None and cell.metric.on_scale(cell.value) is not None:
                marks[at] = Mark.UNTESTED
        elif not difference.significant:
            marks[at] = Mark.NOT_DISTINGUISHABLE
    return marks


def _difference(
    metric: Metric,
    placed: tuple[Address, Cell],
    baseline: tuple[Address, Cell],
    margin: Margin | None,
    look: Look | None = None,
) -> Difference:
    (at, cell), (against, other) = placed, baseline
    sign = metric.gain(1.0)
    estimate = None
    if cell.compared and other.compared:
        of_each = [(sign, cell.compared), (-sign, other.compared)]
        estimate = contrast(of_each, [cell.by_document, other.by_document], look)
    bound = None
    if margin is not None and other.reference is not None:
        bound = metric.margin_on_scale(margin, other.reference)
    return Difference(
        at=at,
        against=against,
        metric=metric,
        n=min(len(cell.scores), len(other.scores)),
        estimate=estimate,
        margin=bound,
        p_equivalent=estimate.p_equivalent(bound) if estimate and bound is not None else None,
    )
