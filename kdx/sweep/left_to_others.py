"""Which runs a worker leaves to others that can go on with them exactly: under like conditions, from the checkpoint.

A run that was begun under other conditions would end with other bits here, and one whose checkpoint lies on another
machine would begin again. Another worker may be able to go on, so that such runs wait for it for some time; then what
happens to them follows `--if-changed`, so that nothing waits for ever. Whether conditions are alike shows only where a
run is about to go on (`kdx.training.resume`). What was refused once is known from then on of all runs of its kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kdx.store.begun import BegunRecord, begun
from kdx.store.database import Database
from kdx.sweep.decide import Action, Decision
from kdx.sweep.durations import in_words
from kdx.sweep.elsewhere import elsewhere
from kdx.vocabulary import IfChanged

PATIENCE = 600.0  # seconds


@dataclass(frozen=True)
class LeftToOthers:
    """What a worker does with runs that others may go on with."""

    patience: float = PATIENCE
    """Seconds that a run waits for them, since a process last worked at it."""
    if_changed: IfChanged = IfChanged.REFUSE
    """What is done then with a run that was begun under other conditions."""

    def __call__(self, database: Database, decisions: Mapping[int, Decision], holder: str) -> dict[int, Decision]:
        """The decisions again; runs that are left to others have another action, or come after all others.

        Args:
            decisions: run id → what would be done with the run.
            holder: this process, see `kdx.sweep.lease_holder`.
        """
        again = [run_id for run_id, one in decisions.items() if _goes_on(one)]
        return self.decide(decisions, begun(database, again) if again else {}, holder)

    def decide(
        self, decisions: Mapping[int, Decision], since: Mapping[int, BegunRecord], holder: str
    ) -> dict[int, Decision]:
        """The same as a pure function.

        Args:
            since: run id → where it was begun, for runs that were.
        """
        refused = {one.conditions: one.refusals[holder] for one in since.values() if holder in one.refusals}
        first: dict[int, Decision] = {}
        last: dict[int, Decision] = {}
        for run_id, decision in decisions.items():
            one = since.get(run_id)
            if one is None or decision.record is None:
                first[run_id] = decision
                continue
            changes = refused.get(one.conditions)
            where = elsewhere(decision.record, one, has_checkpoint=decision.action is Action.CONTINUE)
            if changes is None and where is None:
                first[run_id] = replace(decision, exactly=self._is_early(one))
            else:
                last[run_id] = self._left(decision, one, changes, where)
        return first | last

    def _left(self, decision: Decision, one: BegunRecord, changes: str | None, where: str | None) -> Decision:
        why = f"other conditions here: {changes}" if changes is not None else where
        if changes is not None and self.if_changed is IfChanged.REFUSE:
            return replace(decision, action=Action.LEAVE, reason=f"left to another worker: {why}", left=why)
        if self._is_early(one):
            left = in_words(self.patience - one.waited)
            return replace(decision, action=Action.WAIT, reason=f"left to another worker for {left}: {why}", left=why)
        return decision

    def _is_early(self, one: BegunRecord) -> bool:
        return one.waited < self.patience


def _goes_on(decision: Decision) -> bool:
    return decision.action in (Action.START, Action.CONTINUE) and bool(decision.record and decision.record.attempt)
