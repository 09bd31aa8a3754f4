from dataclasses import FrozenInstanceError

import pytest

from kdx.store.records import FINAL, AttemptRecord, RunState


def test_outcomes_are_final_and_nothing_else_is():
    assert {"completed", "diverged", "pruned"} == FINAL
    assert tuple(RunState)[-3:] == (RunState.COMPLETED, RunState.DIVERGED, RunState.PRUNED)


def test_records_are_frozen():
    record = AttemptRecord(1, "me", 0.0, None, None, 0, None, None, None, None, None)
    with pytest.raises(FrozenInstanceError):
        record.number = 2
