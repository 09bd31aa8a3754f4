"""Compares the cells of a table: which differ, by how much, and which are not distinguishable.

Cells are compared where their numbers compare (`kdx.report.table.comparable`), by the means and the spreads of the two
cells alone (`kdx.report.statistics.estimates.contrast`), perplexities by their logarithm.

A table asks two questions, each with its own correction. Which cells differ from the declared baseline? Holm's
correction covers every such difference of the table. Which cells are worse than the best of their column? The best is
chosen by the same runs, and the cell that is truly the best must not lose to any of the others by chance, so one-sided
p-values are multiplied by the number of comparisons in the column (comparisons with the best, Hsu 1984; by Bonferroni's
correction, which assumes nothing about the spreads). Each column promises by itself that its best is marked.

Where a rule decides how many seeds a cell has, each comparison is over the seeds of its last look, which both cells
have, and allows for all looks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import hypot, sqrt
from types import MappingProxyType
from typing import NamedTuple

from kdx.grid.cell_selector import plain_number
from kdx.grid.field_types import Margin
from kdx.grid.plan import TableSpec
from kdx.grid.seeds import SeedRule
from kdx.grid.table_layout import Address
from kdx.report.selection.cells import Cell
from kdx.report.statistics.estimates import (
    LEVEL,
    Estimate,
    contrast,
    detectable_errors,
    minimum_detectable_difference,
)
from kdx.report.statistics.looks import Look
from kdx.report.statistics.metric import Metric
from kdx.report.statistics.multiple_comparisons import Followed, holm, until_decided
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

    def minimum_detectable_difference(self, *, corrected: bool = False) -> float | None:
        """The smallest difference that a comparison of two typical cells can show; for perplexities in nats.

        Args:
            corrected: after the correction for all comparisons, not of one comparison alone.
        """
        # Equal scores of all seeds show no error by which a difference could be judged.
        if self.spread is None or not self.fixed or not (self.spread[1] or self.over_documents):
            return None
        comparisons = max(1, self.comparisons) if corrected else 1
        over_seeds = self.spread[1] * minimum_detectable_difference(self.seeds, comparisons, sides=self.sides)
        return hypot(over_seeds, self.over_documents * detectable_errors(comparisons, sides=self.sides))


def compare(
    layout: Layout, spec: TableSpec, comparable: Sequence[ComparableCells], rule: SeedRule | None = None
) -> tuple[tuple[Group, ...], tuple[Difference, ...], dict[Address, Mark]]:
    """Every comparison that a table makes.

    Args:
        comparable: the cells of the layout, grouped so that the numbers within a group compare.
        rule: what decides how many seeds a cell has, if a rule does.

    Returns:
        The cells whose numbers compare, in groups; each cell compared with its baseline, or with the best of its column
        where the table declares none; how cells compare with the best of their column, without those that have no
        comparison.
    """
    best = _best_of_columns(comparable)
    from_best = tuple(
        # The best was chosen by the same runs.
        replace(
            difference,
            p=min(1.0, best[difference.at].comparisons * difference.estimate.p_below) if difference.estimate else None,
        )
        for difference in _differences(comparable, lambda at: best[at].places[0] if at in best else None, {}, rule)
    )
    marks = _marks(layout, best, from_best)
    if not spec.baseline:
        most = (max((best[at].comparisons for at in group.cells if at in best), default=0) for group in comparable)
        groups = [_group(group, number, 1, from_best, rule) for group, number in zip(comparable, most, strict=True)]
        return tuple(groups), from_best, marks
    # Evaluations are made of runs that have ended, so no seed waits for them.
    followed = follow(layout, spec, comparable, rule) if rule and not layout.evaluations else {}
    differences = _differences(comparable, baseline_of(layout, spec), spec.margin, rule, followed)
    tested = [difference.estimate.p for difference in differences if difference.estimate]
    # Planned comparisons that cannot be made yet count too.
    number = max(len(tested), len(followed))
    corrected = iter(holm([*tested, *[1.0] * (number - len(tested))]))
    differences = tuple(
        replace(difference, p=next(corrected)) if difference.estimate else difference for difference in differences
    )
    groups = [_group(group, number, 2, differences, rule) for group in comparable]
    return tuple(groups), differences, marks


def baseline_of(layout: Layout, spec: TableSpec) -> BaselineOf:
    """Return the function that finds the place with the baseline's words, and with a cell's own for other factors."""
    rows = {tuple(map(plain_number, header)): index for index, header in enumerate(layout.rows)}
    columns = {tuple(map(plain_number, header)): index for index, header in enumerate(layout.columns)}

    def replaced(factors: Sequence[str], header: Sequence[str]) -> tuple[str, ...]:
        words = (spec.baseline.get(factor, word) for factor, word in zip(factors, header, strict=True))
        return tuple(map(plain_number, words))

    def baseline(at: Address) -> Address | None:
        row = rows.get(replaced(spec.rows, layout.rows[at[0]]))
        column = columns.get(replaced(spec.columns, layout.columns[at[1]]))
        return None if row is None or column is None or (row, column) == at else (row, column)

    return baseline


def follow(
    layout: Layout, spec: TableSpec, comparable: Sequence[ComparableCells], rule: SeedRule
) -> dict[Address, Followed]:
    """How far each planned comparison with the baseline came, whether its cells have scores yet or not."""
    places, baseline = layout.places, baseline_of(layout, spec)
    pairs: list[tuple[Address, Address]] = []
    for at, cell in places.items():
        against = baseline(at)
        if against is not None and against in places and places[against].id != cell.id:
            pairs.append((at, against))
    group_of = {at: group for group in comparable for at in group.cells}

    def test(index: int, look: Look) -> tuple[float, float] | None:
        at, against = pairs[index]
        cell, other = (places[place].until(look.n) for place in (at, against))
        if group_of[at] is not group_of[against] or not (cell.scores and other.scores):
            return None
        margin = spec.margin.get(group_of[at].metric.name)
        difference = _difference(cell, other, at, against, margin, look)
        p = difference.estimate.p if difference.estimate else 1.0
        return p, 1.0 if difference.p_equivalent is None else difference.p_equivalent

    ended = [min(places[at].ended, places[against].ended) for at, against in pairs]
    courses = until_decided(rule.min, rule.max, ended, test)
    return {at: followed for (at, _), followed in zip(pairs, courses, strict=True)}


def _group(
    comparable: ComparableCells, comparisons: int, sides: int, differences: Sequence[Difference], rule: SeedRule | None
) -> Group:
    """Summarise comparable cells; a cell that stands in several places counts once."""
    distinct = list({cell.id: cell for cell in comparable.cells.values() if cell.scores}.values())
    compared = [cell for cell in distinct if cell.compared]
    sds = [summary.sd for cell in compared if (summary := cell.compared) and summary.sd is not None]
    several = len(compared) > 1
    estimates = [
        difference.estimate for difference in differences if difference.at in comparable.cells and difference.estimate
    ]
    over_documents = hypot(*(estimate.over_documents for estimate in estimates))
    return Group(
        metric=comparable.metric,
        task=comparable.task,
        places=tuple(comparable.cells),
        cells=len(distinct),
        seeds=min(len(cell.scores) for cell in compared) if several else 0,
        spread=(min(sds), hypot(*sds) / sqrt(len(sds)), max(sds)) if several else None,
        comparisons=comparisons,
        sides=sides,
        over_documents=over_documents / sqrt(len(estimates)) if estimates else 0.0,
        fixed=rule is None,
    )


def _differences(
    comparable: Sequence[ComparableCells],
    baseline: BaselineOf,
    margins: Mapping[str, Margin],
    rule: SeedRule | None,
    followed: Mapping[Address, Followed] = MappingProxyType({}),
) -> tuple[Difference, ...]:
    """Each cell compared with its baseline where both have scores, still without corrected p-values.

    Args:
        margins: metric → margin.
        rule: what decides how many seeds a cell has, if a rule does.
        followed: place → how far its comparison came under the rule; any other is over the seeds that both cells have.
    """
    differences = []
    for group in comparable:
        margin = margins.get(group.metric.name)
        for at, cell in group.cells.items():
            against = baseline(at)
            other = group.cells.get(against) if against is not None else None
            if against is None or other is None or other.id == cell.id or not (cell.scores and other.scores):
                continue
            if rule is None:
                differences.append(_difference(cell, other, at, against, margin))
                continue
            course = followed.get(at)
            n = course.n if course else min(cell.ended, other.ended, rule.max)
            look = Look(n, rule.min, rule.max) if n >= rule.min else None
            # Before the first look nothing is tested.
            seen = n if look else 0
            difference = _difference(cell.until(seen), other.until(seen), at, against, margin, look)
            differences.append(replace(difference, followed=course))
    return tuple(differences)


def _difference(
    cell: Cell, other: Cell, at: Address, against: Address, margin: Margin | None, look: Look | None = None
) -> Difference:
    metric = cell.metric
    estimate = None
    if cell.compared and other.compared:
        parts = [(metric.gain(1.0), cell.compared), (metric.gain(-1.0), other.compared)]
        estimate = contrast(parts, [cell.by_document, other.by_document], look)
    on_scale = None
    if margin is not None and other.reference is not None:
        on_scale = metric.margin_on_scale(margin, other.reference)
    return Difference(
        at=at,
        against=against,
        metric=metric,
        n=min(len(cell.scores), len(other.scores)),
        estimate=estimate,
        margin=on_scale,
        p_equivalent=estimate.p_equivalent(on_scale) if estimate and on_scale is not None else None,
    )


class _Best(NamedTuple):
    """The best of a column's comparable cells."""

    places: tuple[Address, ...]
    """Several where means are equal."""
    comparisons: int
    """Number of cells that are compared with it."""


def _best_of_columns(comparable: Sequence[ComparableCells]) -> dict[Address, _Best]:
    """Place → the best comparable mean of its column.

    Cells with a single seed, or with a score that is not finite, cannot be the best; a column with fewer than two other
    cells has no best.
    """
    best: dict[Address, _Best] = {}
    for group in comparable:
        columns: dict[int, dict[Address, Cell]] = {}
        for at, cell in group.cells.items():
            if cell.scores:
                columns.setdefault(at[1], {})[at] = cell
        for cells in columns.values():
            means = {at: cell.metric.gain(cell.compared.mean) for at, cell in cells.items() if cell.compared}
            comparisons = len({cells[at].id for at in means}) - 1
            if comparisons > 0:
                highest = tuple(at for at, mean in means.items() if mean == max(means.values()))
                best |= dict.fromkeys(cells, _Best(highest, comparisons))
    return best


def _marks(layout: Layout, best: Mapping[Address, _Best], from_best: Sequence[Difference]) -> dict[Address, Mark]:
    """Mark the best of each column, cells that are not distinguishable from it, and cells that have no test."""
    differences = {difference.at: difference for difference in from_best}
    marks = {}
    for at, cell in layout.places.items():
        if at not in best:
            continue
        difference = differences.get(at)
        if cell.id in {layout.places[place].id for place in best[at].places}:
            marks[at] = Mark.BEST
        elif difference is None or difference.p is None:
            if cell.value is not None and cell.metric.on_scale(cell.value) is not None:
                marks[at] = Mark.UNTESTED
        elif not difference.significant:
            marks[at] = Mark.NOT_DISTINGUISHABLE
    return marks
