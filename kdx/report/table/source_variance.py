"""What initialisation, data order and dropout contribute to the variance of a cell's scores (Bouthillier et al. 2021).

It takes runs whose sources of randomness have seeds of their own, crossed (`kdx.grid.seed_sources`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kdx.errors import KdxError
from kdx.grid.seed_sources import Source, by_source
from kdx.grid.table_layout import Address
from kdx.report.selection.cells import Cell
from kdx.report.statistics.variance_components import NotEstimable, VarianceComponents, variance_components
from kdx.report.table.layout import Layout


@dataclass(frozen=True)
class SourceVariance:
    """The variance of a cell's scores by source, on the scale on which they are compared."""

    components: VarianceComponents | None
    """None where `reason` says why not."""
    fixed: Mapping[Source, int]
    """Source → its seed, where all runs have the same: the variances are those at that seed."""
    mean: float | None
    """Of the scores, on that scale."""
    reason: str = ""
    """Why the variances cannot be estimated."""


def source_variances(layout: Layout) -> dict[Address, SourceVariance]:
    """The variance by source of each cell of a table with a score.

    Raises:
        KdxError: it can be estimated of no cell.
    """
    found = {at: _of(cell) for at, cell in layout.places.items() if cell.scores}
    if not any(one.components for one in found.values()):
        reasons = dict.fromkeys(one.reason for one in found.values())
        raise KdxError(
            f"no cell of table `{layout.name}` tells its sources of variance apart"
            + (f": {'; '.join(reasons)}" if reasons else ""),
            hint="plan them with seeds: {initialisation: 3, order: 3, dropout: 3} in the grid",
        )
    return found


def _of(cell: Cell) -> SourceVariance:
    seeds = by_source(cell.scores)
    scores = [*cell.scores.values()]
    mean = sum(scores) / len(scores)
    fixed = {source: its[0] for source, its in seeds.items() if len(set(its)) == 1}
    varied = {source.value: its for source, its in seeds.items() if source not in fixed}
    if not cell.shared:
        return SourceVariance(None, fixed, mean, "no two runs share a seed of one source and differ in another's")
    if lost := sum(one.score is not None for one in cell.seeds) - len(scores):
        return SourceVariance(None, fixed, mean, f"{lost} of its scores cannot be put on the scale of comparison")
    try:
        return SourceVariance(variance_components(scores, varied), fixed, mean)
    except NotEstimable as error:
        return SourceVariance(None, fixed, mean, str(error))
