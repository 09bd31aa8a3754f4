"""What a run is told beside its cell and its seed is one value, and makes sense."""

from dataclasses import FrozenInstanceError

import pytest

from kdx.run_options import RunOptions
from kdx.vocabulary import IfChanged


def test_a_run_that_is_told_nothing_is_refused_under_other_conditions_and_hangs_after_minutes():
    assert RunOptions() == RunOptions(if_changed=IfChanged.REFUSE, hang_after=600.0)


def test_nobody_on_the_way_changes_them():
    with pytest.raises(FrozenInstanceError):
        RunOptions().hang_after = 1.0


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_time_in_which_nothing_can_happen_is_refused(seconds):
    with pytest.raises(ValueError, match="cannot hang after"):
        RunOptions(hang_after=seconds)
