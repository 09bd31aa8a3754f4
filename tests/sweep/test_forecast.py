"""How long a sweep will take, from how long its cells took."""

import pytest
from grids import TINY
from hypothesis import given
from hypothesis import strategies as st

from kdx.grid.load import load_grid
from kdx.store.status import CellTime, RunCost, WorkRecord
from kdx.sweep.forecast import (
    Basis,
    Forecast,
    Forecaster,
    cost_keys,
    in_words,
    makespan,
    seconds_left,
    typical_error,
)


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


def cost(name: str, seconds: float, cell: dict, steps: int = 10, memory: int | None = None) -> RunCost:
    return RunCost(name, cell, steps, seconds, memory, 100)


PLAIN = {
    "task": "translation",
    "kernel": "exponential",
    "model": {"width": 16},
    "training": {"steps": 10, "learning_rate": 0.1},
    "data": {"corpus": "toy"},
}
OTHER_RATE = PLAIN | {"training": {"steps": 30, "learning_rate": 0.2}}
OTHER_KERNEL = PLAIN | {"kernel": "rbf"}
WIDER = PLAIN | {"model": {"width": 32}}


def test_a_cell_costs_what_its_own_runs_did_and_else_what_like_cells_did():
    forecaster = Forecaster([cost("a", 10.0, PLAIN, memory=7), cost("a", 20.0, PLAIN), cost("b", 90.0, OTHER_KERNEL)])
    assert forecaster.forecast("a", PLAIN) == Forecast(15.0, 7, 100, Basis.CELL, 2)
    # Three times the steps, and no setting on which the cost of a step depends.
    assert forecaster.forecast("c", OTHER_RATE) == Forecast(45.0, 7, 100, Basis.COST, 2)
    linear = forecaster.forecast("d", PLAIN | {"kernel": "linear"})
    assert linear == Forecast(40.0, 7, None, Basis.SIZE, 3)
    assert forecaster.forecast("e", WIDER) is None


def test_errors_are_those_of_what_was_known_before_each_run_ended():
    runs = [cost("a", 10.0, PLAIN), cost("a", 20.0, PLAIN), cost("z", 5.0, WIDER), cost("b", 30.0, OTHER_KERNEL)]
    # The first of its sizes had nothing to be expected from; then 10 for 20, and 15 for 30.
    assert Forecaster(runs).errors == (0.5, 0.5)
    assert typical_error((0.5,)) == "off by 50% for the last run"
    assert typical_error((0.1, 0.2, 0.6)) == "off by 20% for the last 3 runs (median; at most 60%)"
    assert typical_error(()) is None


@given(st.lists(st.floats(0, 1e6), max_size=30), st.integers(1, 8))
def test_runs_that_share_places_take_no_less_than_the_longest_and_their_mean(seconds, at_a_time):
    wall = makespan(seconds, at_a_time)
    assert wall <= sum(seconds) * (1 + 1e-9)
    assert wall >= max(seconds, default=0) and wall >= sum(seconds) / at_a_time * (1 - 1e-9)


def test_a_run_begins_as_soon_as_a_place_is_free():
    assert makespan([4.0, 1.0, 1.0, 1.0], 2) == 4.0
    assert makespan([1.0, 1.0, 1.0, 4.0], 2) == 5.0


@pytest.fixture
def resolved(tmp_path):
    def resolved(*changes: str):
        grid = tmp_path / "grid.yaml"
        grid.write_text(TINY % {"steps": 10, "seeds": 1})
        (only,) = load_grid(grid, given=changes).cells
        return only.spec.model_dump(mode="json", by_alias=True)

    return resolved


def test_what_no_step_takes_longer_for_makes_no_difference(resolved):
    plain = resolved("training.steps=100")
    other = resolved("training.steps=900", "training.learning_rate=1e-5", "data.seed=7", "model.dropout=0.5")
    assert cost_keys(plain) == cost_keys(other)


def test_another_kernel_has_the_same_sizes_and_another_cost(resolved):
    cost, size = cost_keys(resolved("kernel=exponential"))
    other_cost, other_size = cost_keys(resolved("kernel=rbf"))
    assert (cost != other_cost, size == other_size) == (True, True)


def test_another_width_text_or_batch_is_not_alike_at_all(resolved):
    for change in ("model.width=32", "data.train_lines=10", "training.batch_tokens=64", "evaluation.beam=4"):
        assert cost_keys(resolved(change))[1] != cost_keys(resolved())[1], change


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (5940, "99 min"),
        (6000, "2 h"),
        (356400, "99 h"),
        (864000, "10 days"),
    ],
)
def test_the_largest_unit_that_leaves_two_digits(seconds, words):
    assert in_words(seconds) == words
