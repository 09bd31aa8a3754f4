"""Cells of a table side by side: which differ, by how much, and which cannot be told apart.

Cells are comparable on the same task, data and metric. Their means are compared seed by seed, with one residual
variance for all comparable cells of the table (`SeedModel`).

A table asks two questions, and the p-values of each are a family that Holm's correction covers. Which cells differ from
the declared baseline: every such difference of the table. Which cannot be told from the best of their column: since the
best is chosen by the same runs, every pair of cells that stand in one column, over all columns of the table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite, isnan, sqrt

from kdx.report.bootstrap import Bootstrap
from kdx.report.cells import Cell, Metric
from kdx.report.statistics import LEVEL, Estimate, SeedModel, holm, paired, unequal_spread

Address = tuple[int, int]
"""Row and column of a cell."""
Rival = Callable[[Address], Address | None]
"""The cell that a cell is compared with; None for none, or itself."""


@dataclass(frozen=True)
class Difference:
    """A cell against another, as what it gains: positive is better."""

    at: Address
    against: Address
    metric: Metric
    n: int
    """Seeds that both have."""
    estimate: Estimate | None
    """Difference of the means; None where no common seed or no spread tells it."""
    p: float | None = None
    """That there is none, corrected over the family that the difference belongs to."""
    alone: Estimate | None = None
    """The same from these two cells only: the paired t-test without the pooled variance."""
    margin: float | None = None
    """The difference below which the two count as equal, in units of the metric; None: none was stated."""
    p_equivalent: float | None = None
    """That they differ by the margin or more."""
    bootstrap: Bootstrap | None = None
    """Of the two selected runs' BLEU over test sentences, where it was asked for."""

    @property
    def told_apart(self) -> bool:
        """Whether they differ, at the level of 0.05 after the correction."""
        return self.p is not None and self.p < 1 - LEVEL

    @property
    def equivalent(self) -> bool:
        """Whether they are equal within the margin, at the level of 0.05."""
        return self.p_equivalent is not None and self.p_equivalent < 1 - LEVEL


@dataclass(frozen=True)
class Pool:
    """Comparable cells of a table and the error that they share."""

    metric: Metric
    task: str
    cells: int
    """Different cells with a score."""
    seeds: int
    """Of the cell that has the fewest."""
    model: SeedModel | None
    """None where nothing is left to estimate an error from, as with one seed."""
    unequal: float | None
    """p-value of Bartlett's test that the cells spread alike."""
    comparisons: int = 1
    """In the table, over which p-values are corrected."""

    @property
    def detectable(self) -> float | None:
        """The smallest difference of two cells that their seeds show, in units of the metric, in one comparison."""
        return self._detectable(1)

    @property
    def detectable_corrected(self) -> float | None:
        """The same after the correction for all comparisons of the table."""
        return self._detectable(self.comparisons)

    def _detectable(self, comparisons: int) -> float | None:
        if self.model is None:
            return None
        error = self.model.sd * sqrt(2 / self.seeds)
        return Estimate(0.0, error, self.model.df, self.model.sd).detectable(max(1, comparisons))


def pool(cells: Sequence[Cell], task: str) -> Pool:
    """The shared error of comparable cells; a cell that stands in several places counts once."""
    distinct = {cell.id: cell for cell in cells if cell.scores}
    whole = [cell for cell in distinct.values() if cell.summary and len(cell.scores) == cell.summary.n]
    return Pool(
        metric=cells[0].metric,
        task=task,
        cells=len(distinct),
        seeds=min((len(cell.scores) for cell in distinct.values()), default=0),
        model=SeedModel.fit({cell.id: cell.scores for cell in distinct.values()}),
        unequal=unequal_spread([cell.summary for cell in whole if cell.summary]),
    )


def differences(
    pools: Sequence[tuple[Pool, Mapping[Address, Cell]]], rival: Rival, margins: Mapping[str, float]
) -> tuple[Difference, ...]:
    """Each cell against its rival, where both have scores; no p-value yet.

    Args:
        pools: with each, its cells by their places.
        margins: metric → margin.
    """
    found = []
    for shared, cells in pools:
        for at, cell in cells.items():
            against = rival(at)
            other = cells.get(against) if against is not None else None
            if against is None or other is None or other.id == cell.id or not (cell.scores and other.scores):
                continue
            found.append(_difference(shared, (at, cell), (against, other), margins.get(shared.metric.name)))
    return tuple(found)


def corrected(found: Sequence[Difference]) -> tuple[Difference, ...]:
    """The differences with p-values, corrected for all of them."""
    tested = {index: one.estimate.p for index, one in enumerate(found) if one.estimate}
    p = dict(zip(tested, holm([*tested.values()]) if tested else (), strict=True))
    return tuple(replace(one, p=p.get(index)) for index, one in enumerate(found))


def pairs(pools: Sequence[tuple[Pool, Mapping[Address, Cell]]]) -> dict[frozenset[str], float]:
    """Ids of two cells → p-value that they are equal, corrected for all pairs of cells that stand in one column."""
    found: dict[frozenset[str], float] = {}
    for shared, cells in pools:
        if shared.model is None:
            continue
        for column in dict.fromkeys(column for _, column in cells):
            its = dict.fromkeys(cell.id for at, cell in cells.items() if at[1] == column and cell.scores)
            told = zip(combinations(its, 2), shared.model.p_pairs([*its]), strict=True)
            found |= {frozenset(pair): float(p) for pair, p in told if not isnan(p)}
    return dict(zip(found, holm([*found.values()]) if found else (), strict=True))


def best_of(cells: Mapping[Address, Cell]) -> list[Address]:
    """Where the best value stands, several times when values are equal; one value alone is no best."""
    values = {
        at: cell.metric.gain(cell.value)
        for at, cell in cells.items()
        if cell.value is not None and isfinite(cell.value)
    }
    if len(values) < 2:
        return []
    best = max(values.values())
    return [at for at, value in values.items() if value == best]


def _difference(
    shared: Pool, here: tuple[Address, Cell], there: tuple[Address, Cell], margin: float | None
) -> Difference:
    (at, cell), (against, other) = here, there
    sign = cell.metric.gain(1.0)
    weights = {cell.id: sign, other.id: -sign}
    pair = (cell.scores, other.scores) if sign > 0 else (other.scores, cell.scores)
    estimate = shared.model.contrast(weights) if shared.model else None
    return Difference(
        at=at,
        against=against,
        metric=shared.metric,
        n=len(cell.scores.keys() & other.scores.keys()),
        estimate=estimate,
        alone=paired(*pair),
        margin=margin,
        p_equivalent=estimate.p_equivalent(margin) if estimate and margin is not None else None,
    )
