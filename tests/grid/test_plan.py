"""A plan's runs and what is kept of it."""

import json

import pytest
from pydantic import ValidationError

from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell, TableSpec
from kdx.grid.spec import CellSpec

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})


def cell(id: str, ordinal: int, label: str = "x") -> PlannedCell:
    return PlannedCell(id, ordinal, {"axis": label}, SPEC)


def test_choices_that_come_to_one_cell_share_its_runs_under_the_first_ones_name():
    plan = Plan("p", (cell("a", 0, "first"), cell("b", 1), cell("a", 2, "second")), seeds=(0,))
    assert [(run.cell.id, run.cell.labels["axis"]) for run in plan.runs] == [("a", "first"), ("b", "x")]


def test_what_is_kept_with_a_sweep_is_json():
    table = TableSpec(name="t", rows=("kernel",), metric="loss")
    plan = Plan("p", (), (0, 7), (table,), ("kernel",), "what for")
    kept = json.loads(json.dumps(plan.grid))
    assert (kept["description"], kept["axes"], kept["seeds"]) == ("what for", ["kernel"], [0, 7])
    assert TableSpec.model_validate(kept["tables"][0]) == table


def test_a_cell_tells_where_its_grid_has_each_of_its_fields(tmp_path):
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        "task: translation\ndata: {corpus: text}\napproaches:\n  a: {data: {max_tokens: 5}}\n  b: {}\n"
        "axes: {training.steps: [10, 20]}\n"
    )
    first, second, third, _ = load_grid(grid).cells
    assert [str(cell.place("data.corpus")) for cell in (first, third)] == [f"{grid}:2:16"] * 2
    assert (str(first.place("data.max_tokens")), str(third.place("data.max_tokens"))) == (f"{grid}:4:26", f"{grid}:2:7")
    assert [str(cell.place("training.steps")) for cell in (first, second)] == [f"{grid}:6:25", f"{grid}:6:29"]
    assert str(first.place("evaluation.length")) == f"{grid}:1:1"
    assert cell("a", 0).place("data.corpus") is None


def test_a_plan_knows_its_file_wherever_it_was_named_from(tmp_path, monkeypatch):
    (tmp_path / "grid.yaml").write_text("task: translation\ndata: {corpus: text}\n")
    monkeypatch.chdir(tmp_path)
    plan = load_grid("grid.yaml")
    assert plan.file == plan.grid["file"] == str((tmp_path / "grid.yaml").resolve())


@pytest.mark.parametrize(
    "fields", [{"name": ""}, {"rows": ()}, {"rows": None}, {"colums": ()}, {"metric": 3}], ids=lambda fields: [*fields]
)
def test_a_table_without_name_or_rows_or_with_strange_keys_is_refused(fields):
    with pytest.raises(ValidationError):
        TableSpec.model_validate({"name": "t", "rows": ("kernel",), **fields})
