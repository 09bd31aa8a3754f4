"""What follows from the states of runs."""

import math

import pytest
from stored import run_that_ended

from kdx.store.records import RunState, TrialRecord, TrialState


@pytest.mark.parametrize(
    ("ends", "state", "value"),
    [
        ([(RunState.COMPLETED, 1.0), (RunState.COMPLETED, 2.0)], TrialState.COMPLETED, 1.5),
        ([(RunState.COMPLETED, 1.0), (RunState.RUNNING, 2.0)], None, None),
        ([(RunState.FAILED, None), (RunState.PENDING, None)], None, None),
        ([(RunState.COMPLETED, 1.0), (RunState.PRUNED, 2.0)], TrialState.PRUNED, 1.5),
        ([(RunState.COMPLETED, 1.0), (RunState.PRUNED, None)], TrialState.PRUNED, 1.0),
        ([(RunState.PRUNED, 1.0), (RunState.FAILED, None)], TrialState.FAILED, None),
        ([(RunState.COMPLETED, 1.0), (RunState.DIVERGED, 1.0)], TrialState.FAILED, None),
        ([(RunState.COMPLETED, 1.0), (RunState.CANCELLED, None)], TrialState.FAILED, None),
        ([(RunState.COMPLETED, 1.0), (RunState.COMPLETED, math.nan)], TrialState.FAILED, None),
        ([(RunState.COMPLETED, 1.0), (RunState.COMPLETED, None)], TrialState.FAILED, None),
        ([], TrialState.FAILED, None),
    ],
)
def test_how_a_trial_ended_follows_from_its_runs(ends, state, value):
    runs = tuple(run_that_ended(number, *end) for number, end in enumerate(ends))
    trial = TrialRecord(0, {}, {}, "0" * 32 if runs else None, runs)
    assert (trial.state, trial.value, trial.steps) == (state, value, 7 * len(runs))
