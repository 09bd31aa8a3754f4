import pytest
from grids import TINY

from kdx.grid.likeness import likeness
from kdx.grid.load import load_grid


@pytest.fixture
def cell(tmp_path):
    def cell(*changes: str):
        grid = tmp_path / "grid.yaml"
        grid.write_text(TINY % {"steps": 10, "seeds": 1})
        (only,) = load_grid(grid, given=changes).cells
        return only.spec.model_dump(mode="json", by_alias=True)

    return cell


def test_what_no_step_takes_longer_for_makes_no_difference(cell):
    plain = cell("training.steps=100")
    other = cell("training.steps=900", "training.learning_rate=1e-5", "data.seed=7", "model.dropout=0.5")
    assert likeness(plain) == likeness(other)


def test_another_kernel_has_the_same_sizes_and_another_cost(cell):
    cost, size = likeness(cell("kernel=exponential"))
    other_cost, other_size = likeness(cell("kernel=rbf"))
    assert (cost != other_cost, size == other_size) == (True, True)


def test_another_width_text_or_batch_is_not_alike_at_all(cell):
    for change in ("model.width=32", "data.train_lines=10", "training.batch_tokens=64", "evaluation.beam=4"):
        assert likeness(cell(change))[1] != likeness(cell())[1], change
