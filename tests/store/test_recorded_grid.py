import pytest

from kdx.errors import DatabaseError, KdxError
from kdx.grid.load import load_grid
from kdx.store.recorded_grid import check_grid, whole_cell


def test_what_kdx_recorded_is_read():
    plan = load_grid("quickstart")
    check_grid(plan.name, plan.grid)
    cell = plan.cells[0]
    assert whole_cell(cell.id, cell.spec.text).plain["task"] == cell.spec.task


def test_what_somebody_edited_is_refused():
    plan = load_grid("quickstart")
    with pytest.raises(KdxError, match="sweep quickstart: this kdx cannot read its TableSpec: folds"):
        check_grid(plan.name, plan.grid | {"tables": [{"name": "t", "rows": ["task"], "folds": 3}]})
    with pytest.raises(DatabaseError, match="it is not what its id is the hash of"):
        whole_cell(plan.cells[0].id, plan.cells[1].spec.text)
