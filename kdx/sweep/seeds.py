"""Looks at the runs of a plan that have ended, to find which further seeds its rule needs."""

from collections.abc import Mapping

from kdx.grid.plan import Plan
from kdx.report.seeds_until import Needed, needed_seeds
from kdx.store import reading
from kdx.store.database import Database
from kdx.store.records import OVER, RunRecord, SweepRecord


class NeededSeeds:
    """The needed seeds of each cell of a plan; what was found stays until another run has ended, or is taken
    out of tables."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._ended: frozenset[tuple[int, str, str | None]] | None = None
        self._found: Mapping[str, Needed] = {}

    def __call__(self, database: Database | None, records: Mapping[tuple[str, int], RunRecord]) -> Mapping[str, Needed]:
        """Cell id → the seeds that it needs; empty where the plan has no rule.

        Args:
            database: None: there is none yet.
            records: (cell id, seed) → the newest generation of that run.
        """
        if self._plan.seed_rule is None:
            return {}
        ended = frozenset((one.id, one.state, one.invalidated) for one in records.values() if one.state in OVER)
        if ended != self._ended:
            self._found = needed_seeds(self._results(database))
            self._ended = ended
        return self._found

    def _results(self, database: Database | None) -> SweepRecord:
        return reading.results(database, self._plan) if database else reading.no_results(self._plan)
