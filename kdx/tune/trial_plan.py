"""What a search asks of a sweep: runs of trials, which are trained as any other and read validation alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdx.grid.plan import Plan, PlannedRun
from kdx.tune.known_trial import Rivals


@dataclass(frozen=True)
class TrialPlan(Plan):
    """The runs of trials that have not ended."""

    asked: tuple[PlannedRun, ...] = ()
    """Those that may begin now, in their order."""
    again: frozenset[tuple[str, int]] = frozenset()
    """(cell id, seed) of those that another search ended early and this one would not have."""
    search_of: Mapping[str, str] = field(default_factory=dict)
    """Cell id → the search whose trial it is."""
    rivals: Mapping[tuple[str, int], Rivals] = field(default_factory=dict)
    """(cell id, seed) → what the run is judged against while it is trained; none: it runs to its end."""

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        return self.asked
