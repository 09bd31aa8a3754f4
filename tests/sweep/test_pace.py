"""What takes long becomes rare, and what is quick does not become frequent."""

import pytest
from clock import Clock

from kdx.sweep.pace import SHARE, Pace


@pytest.fixture
def clock() -> Clock:
    return Clock()


def takes(pace: Pace, clock: Clock, seconds: float) -> float:
    """Does something that takes n seconds; how long until it is due again."""
    with pace.keep():
        clock.now += seconds
    return pace.next - clock.now


def test_it_is_due_after_the_least_time_and_not_before(clock):
    pace = Pace(2.0, 30.0, clock)
    clock.now += 1.9
    assert not pace.due
    clock.now += 0.1
    assert pace.due


@pytest.mark.parametrize(
    ("seconds", "pause"),
    [(0.0, 2.0), (0.001, 2.0), (0.02, 2.0), (0.1, 10.0), (0.25, 25.0), (0.3, 30.0), (600.0, 30.0)],
)
def test_it_has_no_more_than_its_share_within_the_limits(clock, seconds, pause):
    assert takes(Pace(2.0, 30.0, clock), clock, seconds) == pytest.approx(pause)
    assert pause >= 30.0 or seconds / pause <= SHARE


def test_what_fails_counts_too(clock):
    pace = Pace(1.0, 30.0, clock)
    with pytest.raises(ValueError), pace.keep():
        clock.now += 0.2
        raise ValueError
    assert pace.next - clock.now == pytest.approx(20.0)
