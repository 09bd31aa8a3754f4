"""Finds the further seeds that a plan's rule needs, given the runs that have ended."""

from collections.abc import Mapping

from kdx.grid.plan import Plan, RunKey
from kdx.report.seeds_until import Needed, needed_seeds
from kdx.store import reading
from kdx.store.database import Database
from kdx.store.records import OVER, RunRecord, SweepRecord


class NeededSeeds:
    """Computes the needed seeds of each cell of a plan; the result is kept until another run ends, or is excluded from
    reports."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._ended: frozenset[tuple[int, str, str | None]] | None = None
        self._found: Mapping[str, Needed] = {}

    def __call__(self, database: Database | None, records: Mapping[RunKey, RunRecord]) -> Mapping[str, Needed]:
        """Return cell id → the seeds that the cell needs; empty if the plan has no rule.

        Args:
            database: the database; None if there is none yet.
            records: key → the newest generation of that run.
        """
        if self._plan.seed_rule is None:
            return {}
        ended = frozenset((run.id, run.state, run.invalidated) for run in records.values() if run.state in OVER)
        if ended != self._ended:
            self._found = needed_seeds(self._results(database))
            self._ended = ended
        return self._found

    def _results(self, database: Database | None) -> SweepRecord:
        return reading.results(database, self._plan) if database else reading.no_results(self._plan)
