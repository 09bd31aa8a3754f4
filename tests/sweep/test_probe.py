"""A few steps of a cell tell what its runs will cost."""

import pytest
from grids import TINY

from kdx.grid.load import load_grid
from kdx.sweep.forecast import Basis
from kdx.sweep.probe import probe


@pytest.mark.slow
def test_each_cell_is_measured_or_it_is_said_why_not(tmp_path, data_home):
    grid = tmp_path / "grid.yaml"
    fails = "  fails: {position: lookup, clip: 1000000000000}\n"
    grid.write_text(TINY % {"steps": 500, "seeds": 1} + "approaches:\n  learns: {}\n" + fails)
    learns, fails = load_grid(grid).cells
    (first, cost), (second, problem) = probe([learns, fails])
    assert (first, second) == (learns, fails)
    assert (cost.basis, cost.parameters) == (Basis.PROBE, pytest.approx(5_000, rel=0.9))
    assert cost.seconds > 0 and cost.memory > 10**7
    assert "can't allocate memory" in problem


@pytest.mark.slow
def test_cells_that_are_left_are_not_measured_once_nobody_asks(tmp_path, data_home):
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 500, "seeds": 1} + "axes: {kernel: [exponential, rbf]}\n")
    asked = probe(load_grid(grid).cells)
    next(asked)
    asked.close()
