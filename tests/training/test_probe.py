"""Training for a few steps measures a cell."""

import pytest
from grids import TINY

from kdx.grid.load import load_grid
from kdx.training.probe import STEPS, measure


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "warmup-stable-decay"])
def test_a_cell_is_measured_whatever_its_schedule(tmp_path, data_home, schedule):
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 500, "seeds": 1})
    (cell,) = load_grid(grid, given=[f"training.schedule={schedule}", "training.average=2"]).cells
    result = measure({"cell": cell.spec.text}, lambda words: None)
    assert cell.spec.training.steps > STEPS
    assert result["parameters"] == 6032
    assert result["step"] > 0 and result["passes"] > 0
