"""A table as a value: what stands in each place, how places compare, and what goes below; no format, no rounding."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdx.grid.plan import Shown
from kdx.report.against import Beside
from kdx.report.cells import Cell, Metric
from kdx.report.comparisons import Address, Difference, Pool
from kdx.report.fairness import Finding


@dataclass(frozen=True)
class Table:
    """A table, ready to be written down in any format."""

    name: str
    caption: str
    """The grid's own words."""
    shown: Shown
    """What its places hold: the selected test score, or the mean over seeds."""
    row_factors: tuple[str, ...]
    column_factors: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Header of each row: a word for each row factor."""
    columns: tuple[tuple[str, ...], ...]
    """Header of each column: a word for each column factor, none where the table has no column factor."""
    metrics: tuple[Metric | None, ...]
    """The metric of each column; None where it mixes several."""
    body: tuple[tuple[Cell | None, ...], ...]
    """Rows of cells; None where the grid plans nothing, or the cell's task has no such metric."""
    baseline: Mapping[str, str] = field(default_factory=dict)
    """Factor → word of the cells that others are compared with; empty: each with the best of its column."""
    pools: tuple[Pool, ...] = ()
    """One for each task, data and metric: the error that comparable cells share."""
    differences: tuple[Difference, ...] = ()
    """Each cell against its baseline, or against the best of its column; p-values are corrected for all differences of
    the table, or for all pairs of cells of its columns."""
    audit: tuple[Finding, ...] = ()
    """What keeps a comparison from being fair."""
    notes: tuple[str, ...] = ()
    """The caption that goes with the numbers: selection rule, n, metrics, what the words in the body mean."""
    best: str = ""
    """What the cells marked best are, such as "best of its column"; empty where none is marked."""
    near: str = ""
    """What the cells marked near the best are; empty where none is marked."""
    ahead: str = ""
    """What the cells marked ahead of the best are; empty where none is marked."""
    beside: Beside | None = None
    """Published values beside these, where they were asked for."""

    @property
    def places(self) -> dict[Address, Cell]:
        """Every cell by its row and column, row by row."""
        return {(r, c): cell for r, row in enumerate(self.body) for c, cell in enumerate(row) if cell}

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, row by row."""
        return tuple(self.places.values())

    @property
    def n(self) -> int | None:
        """The number of seeds behind every score, or None when it is not the same everywhere."""
        numbers = {cell.summary.n for cell in self.cells if cell.value is not None and cell.summary}
        return numbers.pop() if len(numbers) == 1 else None

    @property
    def fewest(self) -> int:
        """Finite scores of the cell that has the fewest, of those with any; 0 where none has."""
        return min((len(cell.scores) for cell in self.cells if cell.scores), default=0)

    def header(self, at: Address) -> dict[str, str]:
        """Factor → word of a place."""
        row, column = at
        factors = (*self.row_factors, *self.column_factors)
        return dict(zip(factors, (*self.rows[row], *self.columns[column]), strict=True))
