"""The fields in which cells differ, and how two plans differ in cells, seeds and fields."""

from collections.abc import Callable

import pytest

from kdx.grid.difference import Contents, Difference, difference, varying
from kdx.grid.load import load_grid

GRID = """\
task: prediction
data: {corpus: synthetic-language}
training: {steps: 60, batch_tokens: 512, length: 32}
axes: {position: [none, rotary], kernel: [exponential, rbf]}
seeds: 3
"""


def test_the_fields_that_vary_are_named_with_their_values_in_order():
    cell = {"task": "t", "kernel": "rbf", "position": ["product"], "training": {"steps": 10, "schedule": {"warmup": 3}}}
    other = cell | {"kernel": "linear", "training": {"steps": 10, "schedule": {"warmup": 5}}}
    assert varying([cell, other, other | {"position": [], "degree": 2}]) == {
        "kernel": ("rbf", "linear"),
        "position": (["product"], []),
        "training.schedule.warmup": (3, 5),
        "degree": (None, 2),
    }
    assert varying([]) == varying([cell]) == varying([cell, cell]) == {}


@pytest.fixture
def between(tmp_path) -> Callable[[str, str], Difference]:
    """The difference between two grids, of which the first is stored as JSON."""

    def contents(text: str) -> Contents:
        path = tmp_path / "grid.yaml"
        path.write_text(text)
        return Contents.of(load_grid(path))

    def between(before: str, now: str) -> Difference:
        first = contents(before)
        stored = {id: cell.text for id, cell in first.cells.items()}
        return difference(Contents(stored, first.seeds, first.file), contents(now))

    return between


def test_an_option_at_its_default_is_no_difference_to_a_cell_without_it(between):
    # Only exponential kernels have a temperature and a scale.
    plans = between(GRID.replace("exponential, rbf", "linear"), GRID.replace("exponential, rbf", "exponential"))
    assert str(plans) == "kernel: linear → exponential"


def test_the_same_grid_does_not_differ(between):
    plans = between(GRID, GRID.replace("kernel: [exponential, rbf]", "kernel: [rbf, exponential]"))
    assert (plans.gone, plans.new, plans.seeds_gone, plans.seeds_new, plans.changes) == ((), (), (), (), ())
    assert (len(plans.shared), plans.runs_gone) == (4, 0)


@pytest.mark.parametrize(
    ("change", "cells", "runs", "message"),
    [
        (("steps: 60", "steps: 80"), (4, 4, 0), 12, "training.steps: 60 → 80"),
        (("rotary", "alibi"), (2, 2, 2), 6, "position: rotary → alibi"),
        (("rbf]", "rbf, linear]"), (0, 2, 4), 0, "kernel: also linear"),
        # Without a position nothing is placed.
        (("none, rotary", "none"), (2, 0, 2), 6, "position: without rotary, placement: without decoder-self"),
        (("none, rotary", "none, rotary, alibi, t5"), (0, 4, 4), 0, "position: also alibi, t5"),
        (("length: 32}", "length: 32}\nmemory: 16"), (4, 4, 0), 12, "memory: 0 → 16"),
        (("seeds: 3", "seeds: [1, 2, 5]"), (0, 0, 4), 4, "seeds: 0 → 5"),
        (("seeds: 3", "seeds: 1"), (0, 0, 4), 8, "seeds: without 1, 2"),
        (("seeds: 3", "seeds: 50"), (0, 0, 4), 0, "seeds: also 3, 4, … (47 values)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_edited_is_reported(between, change, cells, runs, message):
    plans = between(GRID, GRID.replace(*change))
    assert (len(plans.gone), len(plans.new), len(plans.shared)) == cells
    assert (plans.runs_gone, str(plans)) == (runs, message)


def test_runs_that_are_gone_are_of_the_cells_that_lose_them(between):
    assert len(between(GRID, GRID.replace("rotary", "alibi")).cells_that_lose_runs) == 2
    assert len(between(GRID, GRID.replace("seeds: 3", "seeds: 2")).cells_that_lose_runs) == 4
    assert between(GRID, GRID.replace("seeds: 3", "seeds: 4")).cells_that_lose_runs == ()


def test_other_combinations_of_the_same_values_are_reported_as_such(between):
    grid = GRID.replace(
        "axes: {position: [none, rotary], kernel: [exponential, rbf]}", "approaches: {a: {%s}, b: {%s}}"
    )
    straight = grid % ("position: none, kernel: exponential", "position: rotary, kernel: rbf")
    crossed = grid % ("position: none, kernel: rbf", "position: rotary, kernel: exponential")
    plans = between(straight, crossed)
    assert (len(plans.gone), str(plans)) == (2, "other combinations of the same values")


def test_however_much_differs_a_few_words_report_it(between):
    steps = ", ".join(str(200 + step) for step in range(300))
    large = GRID.replace("axes: {", f"axes: {{training.steps: [{steps}], ").replace("rotary", "alibi")
    other = large.replace("corpus: synthetic-language", "corpus: other-text, seed: 9, train_lines: 5")
    plans = between(GRID, other + "model: {width: 64, dropout: 0.5, inner: 8}\n")
    assert len(plans.new) == 1200
    assert str(plans) == (
        "position: rotary → alibi, data.corpus: synthetic-language → other-text, data.train_lines: none → 5, and 5 more"
    )
    assert [str(change) for change in plans.changes if change.field == "training.steps"] == [
        "training.steps: 60 → 200, 201, … (300 values)"
    ]
