"""A few steps of a cell tell what its runs will cost."""

import pytest
from grids import TINY

from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.sweep.forecast import Basis
from kdx.sweep.probe import probe


@pytest.mark.slow
def test_a_cell_is_measured_or_the_reason_is_reported(tmp_path, data_home):
    grid = tmp_path / "grid.yaml"
    fails = "  fails: {position: lookup, clip: 1000000000000}\n"
    grid.write_text(TINY % {"steps": 500, "seeds": 1} + "approaches:\n  learns: {}\n" + fails)
    learns, fails = load_grid(grid).cells
    cost = probe(learns)
    assert (cost.basis, cost.parameters) == (Basis.PROBE, 6032)
    assert cost.seconds > 0 and cost.memory > 10**7
    with pytest.raises(KdxError, match=r"^RuntimeError: .*can't allocate memory"):
        probe(fails)
