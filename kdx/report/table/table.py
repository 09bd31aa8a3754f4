"""A table as a value: what stands in each place, how places compare, and what goes below; no format, no rounding."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdx.report.papers.published_comparison import Beside
from kdx.report.table.audit import Finding
from kdx.report.table.comparisons import Difference, Group
from kdx.report.table.layout import Layout


@dataclass(frozen=True)
class Table(Layout):
    """A table, ready to be written down in any format."""

    baseline: Mapping[str, str] = field(default_factory=dict)
    """Factor → word of the cells that others are compared with; empty: each with the best of its column."""
    groups: tuple[Group, ...] = ()
    """Cells whose numbers compare, and what their seeds can show."""
    differences: tuple[Difference, ...] = ()
    """Each cell against its baseline, or against the best of its column."""
    audit: tuple[Finding, ...] = ()
    """What keeps a comparison from being fair."""
    notes: tuple[str, ...] = ()
    """What goes with the numbers: selection rule, n, what the words in the body mean."""
    definitions: tuple[str, ...] = ()
    """How the metrics were made, as the runs recorded it."""
    best: str = ""
    """What the cells marked best are, such as "best mean of its column"; empty where none is marked."""
    near: str = ""
    """What the cells marked near the best are; empty where none is marked."""
    untested: str = ""
    """What the cells marked untested are; empty where none is marked."""
    beside: Beside | None = None
    """Published values beside these, where they were asked for."""
