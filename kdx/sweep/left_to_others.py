"""Finds the runs that a worker leaves to others that can resume them exactly: same conditions, and the checkpoint.

A run that was started under other conditions would end with other bits here, and a run whose checkpoint is on another
machine would start again. Another worker may be able to resume it, so such a run waits for some time; after that,
`--if-changed` decides. Whether conditions differ shows only when a run is about to resume (`kdx.training.resume`); once
one run was refused, the answer is known for all runs that were started under the same conditions.
"""

from collections.abc import Mapping
from dataclasses import replace

from kdx.store.unfinished import InProgress
from kdx.sweep.blocked import on_other_host
from kdx.sweep.decide import Action, Decision
from kdx.sweep.durations import in_words
from kdx.vocabulary import IfChanged


def leave_to_others(
    decisions: Mapping[int, Decision],
    begun: Mapping[int, InProgress],
    holder: str,
    *,
    patience: float,
    if_changed: IfChanged,
) -> dict[int, Decision]:
    """Return the decisions; runs that are left to others have another action, or come last.

    Args:
        decisions: run id → what would be done with the run.
        begun: run id → where it was computed, for runs that were started.
        holder: name of this process, see `kdx.sweep.lease_holder`.
        patience: seconds that a run waits for others after a process last computed it.
        if_changed: what to do after that with a run that was started under other conditions.
    """
    refused = {record.conditions: record.refusals[holder] for record in begun.values() if holder in record.refusals}
    first: dict[int, Decision] = {}
    last: dict[int, Decision] = {}
    for run_id, decision in decisions.items():
        record = begun.get(run_id)
        if record is None or decision.record is None:
            first[run_id] = decision
            continue
        early = record.waited < patience
        changes = refused.get(record.conditions)
        where = on_other_host(decision.record, record, has_checkpoint=decision.action is Action.CONTINUE)
        why = f"other conditions here: {changes}" if changes is not None else where
        if why is None:
            first[run_id] = replace(decision, exactly=early)
        elif changes is not None and if_changed is IfChanged.REFUSE:
            reason = f"left to another worker: {why}"
            last[run_id] = replace(decision, action=Action.LEAVE, reason=reason, left=why)
        elif early:
            reason = f"left to another worker for {in_words(patience - record.waited)}: {why}"
            last[run_id] = replace(decision, action=Action.WAIT, reason=reason, left=why)
        else:
            last[run_id] = decision
    return first | last
