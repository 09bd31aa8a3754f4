"""How long a sweep will take, from how long its cells took."""

from kdx.store.status import CellTime, WorkRecord
from kdx.sweep.forecast import seconds_left


def cell(name: str, left: int, seconds: float | None) -> CellTime:
    return CellTime(1, name, left, seconds)


def work(name: str, running: float) -> WorkRecord:
    return WorkRecord(1, 1, name, "me", 60.0, 10, running)


def test_every_run_that_is_left_takes_as_long_as_its_cell():
    assert seconds_left([cell("a", 2, 10.0), cell("b", 1, 100.0)], []) == 120


def test_runs_at_work_are_as_far_as_their_time_says_and_share_the_rest():
    assert seconds_left([cell("a", 3, 10.0)], [work("a", 4.0), work("a", 6.0)]) == 10


def test_a_run_that_takes_too_long_counts_as_done():
    assert seconds_left([cell("a", 1, 10.0)], [work("a", 1000.0)]) == 0


def test_without_a_completed_run_nobody_knows():
    assert seconds_left([cell("a", 3, None)], [work("a", 1.0)]) is None
