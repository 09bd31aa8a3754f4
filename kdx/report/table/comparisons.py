"""Cells of a table side by side: which differ, by how much, and which cannot be told apart.

Cells are compared where their numbers compare (`kdx.report.table.comparable`), by the means and the spreads of the two
cells alone (`kdx.report.statistics.estimates.contrast`), perplexities by their logarithm.

A table asks two questions, each with its own correction. Which cells differ from the declared baseline: Holm's, over
every such difference of the table. Which cells are worse than the best of their column: as the best is chosen by the
same runs, a cell that is in truth the best has to be safe from each of its rivals, so one-sided p-values are multiplied
by the number of rivals, over all columns of the table (comparisons with the best, Hsu 1984; by Bonferroni, which asks
nothing of their spreads).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log1p, sqrt

from kdx.grid.sections import Margin
from kdx.report.selection.cells import Cell, Metric
from kdx.report.statistics.estimates import LEVEL, Estimate, SeedEffect, contrast, detectable, holm, paired, seed_effect
from kdx.report.statistics.randomisation import Randomisation
from kdx.report.table.layout import Address

Rival = Callable[[Address], Address | None]
"""The cell that a cell is compared with; None for none, or itself."""


@dataclass(frozen=True)
class Difference:
    """A cell against another, as what it gains: positive is better; of perplexities, in nats."""

    at: Address
    against: Address
    metric: Metric
    n: int
    """Seeds of the cell that has fewer of the two."""
    estimate: Estimate | None
    """Difference of the means; None where a single seed has no spread to judge it by."""
    p: float | None = None
    """That there is none, or that the cell is no worse than the best; corrected over the table."""
    paired: Estimate | None = None
    """The same by the paired t-test, over the seeds that both have."""
    margin: float | None = None
    """The difference below which the two count as equal, on the same scale; None: none was stated."""
    p_equivalent: float | None = None
    """That they differ by the margin or more."""
    randomisation: Randomisation | None = None
    """Of the two selected runs' BLEU over test sentences, where it was asked for."""

    @property
    def told_apart(self) -> bool:
        """Whether they differ, at the level of 0.05 after the correction."""
        return self.p is not None and self.p < 1 - LEVEL

    @property
    def equivalent(self) -> bool:
        """Whether they are equal within the margin, at the level of 0.05."""
        return self.p_equivalent is not None and self.p_equivalent < 1 - LEVEL


def margin_on_scale(metric: Metric, margin: Margin, reference: float) -> float:
    """A margin on the scale on which the metric is compared.

    Args:
        reference: the mean that it is taken from: of a share, and of one in perplexities, which are compared in nats.
    """
    if isinstance(margin, str):
        share = float(margin.rstrip("%")) / 100
        return log1p(share) if metric.in_nats else share * abs(reference)
    return log1p(margin / reference) if metric.in_nats else margin


def ratio(gain: float) -> float:
    """A gain in nats as the perplexity over that of the other: below 1 is better."""
    return exp(min(700.0, max(-700.0, -gain)))


@dataclass(frozen=True)
class Group:
    """Cells of a table whose numbers compare."""

    metric: Metric
    task: str
    cells: int
    """Different cells with a score."""
    seeds: int
    """Of the compared cell that has the fewest; 0 where no two cells can be compared."""
    spread: tuple[float, float, float] | None
    """Lowest standard deviation over seeds of a compared cell, root mean square, highest; of perplexities, in nats."""
    seed_effect: SeedEffect | None
    """Whether common seeds move the cells alike."""
    comparisons: int = 1
    """In the table, over which p-values are corrected."""
    sides: int = 1
    """2 where cells are compared with a baseline, 1 with the best."""

    @property
    def detectable(self) -> float | None:
        """The smallest difference that two cells of usual spread show in one comparison; of perplexities, in nats."""
        return self._detectable(1)

    @property
    def detectable_corrected(self) -> float | None:
        """The same after the correction for all comparisons of the table."""
        return self._detectable(self.comparisons)

    def _detectable(self, comparisons: int) -> float | None:
        if self.spread is None:
            return None
        return self.spread[1] * detectable(self.seeds, max(1, comparisons), sides=self.sides)


def group(cells: Sequence[Cell], task: str) -> Group:
    """What comparable cells have in common; a cell that stands in several places counts once."""
    distinct = list({cell.id: cell for cell in cells if cell.scores}.values())
    compared = [cell for cell in distinct if cell.compared]
    sds = [one.sd for cell in compared if (one := cell.compared) and one.sd is not None]
    able = len(compared) > 1
    return Group(
        metric=cells[0].metric,
        task=task,
        cells=len(distinct),
        seeds=min(len(cell.scores) for cell in compared) if able else 0,
        spread=(min(sds), hypot(*sds) / sqrt(len(sds)), max(sds)) if able else None,
        seed_effect=seed_effect([cell.scores for cell in compared]) if able else None,
    )


Groups = Sequence[tuple[Group, Mapping[Address, Cell]]]
"""Comparable cells by their places, each with what they have in common."""


def differences(groups: Groups, rival: Rival, margins: Mapping[str, Margin]) -> tuple[Difference, ...]:
    """Each cell against its rival, where both have scores; no p-value yet.

    Args:
        margins: metric → margin.
    """
    found = []
    for shared, cells in groups:
        for at, cell in cells.items():
            against = rival(at)
            other = cells.get(against) if against is not None else None
            if against is None or other is None or other.id == cell.id or not (cell.scores and other.scores):
                continue
            found.append(_difference(shared.metric, (at, cell), (against, other), margins.get(shared.metric.name)))
    return tuple(found)


def corrected(found: Sequence[Difference]) -> tuple[Difference, ...]:
    """The differences with p-values, corrected for all of them."""
    tested = {index: one.estimate.p for index, one in enumerate(found) if one.estimate}
    p = dict(zip(tested, holm([*tested.values()]) if tested else (), strict=True))
    return tuple(replace(one, p=p.get(index)) for index, one in enumerate(found))


def best_of_columns(groups: Groups) -> dict[Address, tuple[Address, ...]]:
    """Place → where the best mean stands that it compares with, several times when means are equal.

    Cells with a single seed, or with a score that is no finite number, are no rivals; a column with fewer than two
    others has no best.
    """
    found: dict[Address, tuple[Address, ...]] = {}
    for _, cells in groups:
        for column in dict.fromkeys(column for _, column in cells):
            its = {at: cell for at, cell in cells.items() if at[1] == column and cell.scores}
            means = {at: cell.metric.gain(cell.compared.mean) for at, cell in its.items() if cell.compared}
            if len({its[at].id for at in means}) > 1:
                best = tuple(at for at, mean in means.items() if mean == max(means.values()))
                found |= dict.fromkeys(its, best)
    return found


def rivals(groups: Groups, best: Mapping[Address, tuple[Address, ...]]) -> int:
    """Comparisons with the best: of each column of comparable cells, all but one."""
    columns: dict[tuple[int, int], set[str]] = {}
    for index, (_, cells) in enumerate(groups):
        for at, cell in cells.items():
            if at in best and cell.compared:
                columns.setdefault((index, at[1]), set()).add(cell.id)
    return sum(len(its) - 1 for its in columns.values())


def worse_than_best(found: Sequence[Difference], comparisons: int) -> tuple[Difference, ...]:
    """Differences from the best with their p-values, one-sided and multiplied by the number of rivals."""
    return tuple(
        replace(one, p=None if one.estimate is None else min(1.0, comparisons * one.estimate.p_below)) for one in found
    )


def _difference(
    metric: Metric, here: tuple[Address, Cell], there: tuple[Address, Cell], margin: Margin | None
) -> Difference:
    (at, cell), (against, other) = here, there
    sign = metric.gain(1.0)
    estimate = contrast([(sign, cell.compared), (-sign, other.compared)]) if cell.compared and other.compared else None
    pair = (cell.scores, other.scores) if sign > 0 else (other.scores, cell.scores)
    bound = None
    if margin is not None and other.reference is not None:
        bound = margin_on_scale(metric, margin, other.reference)
    return Difference(
        at=at,
        against=against,
        metric=metric,
        n=min(len(cell.scores), len(other.scores)),
        estimate=estimate,
        paired=paired(*pair),
        margin=bound,
        p_equivalent=estimate.p_equivalent(bound) if estimate and bound is not None else None,
    )
