"""What takes long becomes rare, and what is quick does not become frequent."""

import time

import pytest

from kdx.sweep.pace import SHARE, Pace


class Clock:
    def __init__(self, monkeypatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def takes(self, pace: Pace, seconds: float) -> float:
        """Does something that takes so long; how long until it is due again."""
        with pace.keep():
            self.now += seconds
        return pace.next - self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    return Clock(monkeypatch)


def test_it_is_due_after_the_least_time_and_not_before(clock):
    pace = Pace(2.0, 30.0)
    clock.now += 1.9
    assert not pace.due
    clock.now += 0.1
    assert pace.due


@pytest.mark.parametrize(
    ("seconds", "pause"),
    [(0.0, 2.0), (0.001, 2.0), (0.02, 2.0), (0.1, 10.0), (0.25, 25.0), (0.3, 30.0), (600.0, 30.0)],
)
def test_it_has_no_more_than_its_share_within_the_limits(clock, seconds, pause):
    assert clock.takes(Pace(2.0, 30.0), seconds) == pytest.approx(pause)
    assert pause >= 30.0 or seconds / pause <= SHARE


def test_one_slow_time_does_not_last(clock):
    pace = Pace(1.0, 30.0)
    assert clock.takes(pace, 5.0) == pytest.approx(30.0)
    assert clock.takes(pace, 0.001) == pytest.approx(1.0)


def test_what_fails_counts_too(clock):
    pace = Pace(1.0, 30.0)
    with pytest.raises(ValueError), pace.keep():
        clock.now += 0.2
        raise ValueError
    assert pace.next - clock.now == pytest.approx(20.0)
