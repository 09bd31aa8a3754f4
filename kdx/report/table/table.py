"""A table as a value: what stands in each place, how places compare, and what goes below; no format, no rounding."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdx.grid.table_layout import Address
from kdx.report.papers.published_comparison import PublishedComparison
from kdx.report.statistics.randomisation import Randomisation
from kdx.report.table.audit import UnequalFact
from kdx.report.table.comparisons import Difference, Group, Mark
from kdx.report.table.layout import Layout


@dataclass(frozen=True)
class Table:
    """A table, ready to be written down in any format; it is built once (`kdx.report.table.build`)."""

    layout: Layout
    baseline: Mapping[str, str] = field(default_factory=dict)
    """Factor → word of the cells that others are compared with; empty: each with the best of its column."""
    groups: tuple[Group, ...] = ()
    """Cells whose numbers compare, and what their seeds can show."""
    differences: tuple[Difference, ...] = ()
    """Each cell against its baseline, or against the best of its column."""
    randomisations: Mapping[Address, Randomisation] = field(default_factory=dict)
    """Of a difference's two selected runs, by the place of the difference, where it was asked for."""
    marks: Mapping[Address, Mark] = field(default_factory=dict)
    """How cells stand to the best of their column."""
    legend: Mapping[Mark, str] = field(default_factory=dict)
    """What each mark of the table means, such as "best mean of its column"."""
    audit: tuple[UnequalFact, ...] = ()
    """What keeps a comparison from being fair."""
    notes: tuple[str, ...] = ()
    """What goes with the numbers: selection rule, n, what the words in the body mean."""
    definitions: tuple[str, ...] = ()
    """How the metrics were made, as the runs recorded it."""
    published: PublishedComparison | None = None
    """Published values beside these, where they were asked for."""
