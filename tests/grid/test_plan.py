"""A plan's runs and what is kept of it."""

import json

import pytest
from pydantic import ValidationError

from kdx.grid.plan import Plan, PlannedCell, TableSpec
from kdx.grid.spec import CellSpec

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})


def cell(id: str, ordinal: int, label: str = "x") -> PlannedCell:
    return PlannedCell(id, ordinal, {"axis": label}, SPEC)


def test_one_seed_of_every_cell_comes_before_the_next_seed():
    plan = Plan("p", (cell("a", 0), cell("b", 1)), seeds=(4, 2))
    assert [run.key for run in plan.runs] == [("a", 4), ("b", 4), ("a", 2), ("b", 2)]


def test_choices_that_come_to_one_cell_share_its_runs_under_the_first_ones_name():
    plan = Plan("p", (cell("a", 0, "first"), cell("b", 1), cell("a", 2, "second")), seeds=(0,))
    assert [(run.cell.id, run.cell.labels["axis"]) for run in plan.runs] == [("a", "first"), ("b", "x")]


def test_what_is_kept_with_a_sweep_is_json():
    table = TableSpec(name="t", rows=("kernel",), metric="loss")
    plan = Plan("p", (), (0, 7), (table,), ("kernel",), "what for")
    kept = json.loads(json.dumps(plan.grid))
    assert (kept["description"], kept["axes"], kept["seeds"]) == ("what for", ["kernel"], [0, 7])
    assert TableSpec.model_validate(kept["tables"][0]) == table


@pytest.mark.parametrize(
    "fields", [{"name": ""}, {"rows": ()}, {"rows": None}, {"colums": ()}, {"metric": 3}], ids=lambda fields: [*fields]
)
def test_a_table_without_name_or_rows_or_with_strange_keys_is_refused(fields):
    with pytest.raises(ValidationError):
        TableSpec.model_validate({"name": "t", "rows": ("kernel",), **fields})
