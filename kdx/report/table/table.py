"""A table as a value: its cells, how they compare, and its notes; without format or rounding."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdx.grid.table_layout import Address
from kdx.report.papers.published_comparison import PublishedComparison
from kdx.report.selection.searched import SearchedCell
from kdx.report.table.audit import UnequalFact
from kdx.report.table.bleu_randomisation import Randomisation
from kdx.report.table.comparisons import Difference, Group, Mark
from kdx.report.table.layout import Layout


@dataclass(frozen=True)
class Table:
    """A table that is ready to be written in any format; `kdx.report.tables` builds it in one step."""

    layout: Layout
    baseline: Mapping[str, str] = field(default_factory=dict)
    """Factor → word of the baseline; empty if each cell is compared with the best of its column."""
    groups: tuple[Group, ...] = ()
    """The groups of cells whose numbers compare, and what their seeds can show."""
    differences: tuple[Difference, ...] = ()
    """Each cell against its baseline, or against the best of its column."""
    randomisations: Mapping[Address, Randomisation] = field(default_factory=dict)
    """Place of a difference → the randomisation of its two selected runs; empty unless asked for."""
    marks: Mapping[Address, Mark] = field(default_factory=dict)
    """How cells compare with the best of their column."""
    legend: Mapping[Mark, str] = field(default_factory=dict)
    """The meaning of each mark in the table, such as "best mean of its column"."""
    audit: tuple[UnequalFact, ...] = ()
    """The facts that make a comparison unfair."""
    notes: tuple[str, ...] = ()
    """The sentences that explain the numbers: selection rule, n, and the words in the body."""
    definitions: tuple[str, ...] = ()
    """How the metrics were computed, as the runs recorded it."""
    searches: Mapping[Address, SearchedCell] = field(default_factory=dict)
    """Place → the search that found its cell; places whose cell was not searched for are left out."""
    published: PublishedComparison | None = None
    """Published values of the same cells; None unless asked for."""
