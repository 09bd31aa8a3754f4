"""What lies under and over a grid's file: grids that it extends, presets, and keys of the command line."""

from pathlib import Path

import pytest

from kdx.errors import Place
from kdx.grid.extends import extended, preset_of
from kdx.grid.load import load_grid
from kdx.grid.source import Node

HERE = Place("grid.yaml", 1, 1)


def test_mappings_merge_key_by_key_over_a_chain_and_each_value_keeps_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\ntraining: {steps: 1, warmup: 1}\nseeds: [1, 2]\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\ntraining: {steps: 2}\n")
    (tmp_path / "c.yaml").write_text("extends: b.yaml\nseeds: 3\n")
    root = extended(tmp_path / "c.yaml", [])
    assert root.plain() == {"training": {"steps": 2, "warmup": 1}, "seeds": 3}
    assert root.at(("training", "steps")).file == str(tmp_path / "b.yaml")
    assert root.at(("training", "warmup")).file == str(tmp_path / "a.yaml")


def test_a_preset_is_one_of_its_task() -> None:
    def named(name: str) -> Node:
        return Node(HERE, {"preset": Node(HERE, name)})

    found = preset_of(named("prediction-mini"), None)
    assert found is not None and found.plain()["task"] == "prediction"
    assert preset_of(Node(HERE, {}), None) is None


TEXT = """
task: translation
data: {corpus: synthetic-translation}
seeds: 2
axes: {kernel: [rbf, linear]}
approaches: {a: {training: {steps: 5}}}
"""


@pytest.fixture
def grid(tmp_path):
    file = tmp_path / "grid.yaml"
    file.write_text(TEXT)
    return file


def test_it_lies_over_all_that_the_file_says(grid):
    given = ["training.steps=100", "training.learning_rate=1e-3", "position=[lookup, product]", "seeds=[4, 7]"]
    plan = load_grid(grid, given=[*given, "name=other", "data={train_lines: 7}"])
    assert plan.seeds == (4, 7) and plan.name == "other"
    for cell in plan.cells:
        assert cell.spec.training.steps == 100 and cell.spec.training.learning_rate == 1e-3
        assert cell.spec.position == ("lookup", "product") and cell.spec.data.train_lines == 7


def test_it_sets_what_selects_what_a_layer_is_and_what_is_searched(grid):
    plan = load_grid(grid, given=["select.metric=valid/loss", "layers.odd.kernel=linear"])
    assert {cell.spec.select.metric for cell in plan.cells} == {"valid/loss"}
    assert any(cell.spec.layers for cell in plan.cells)
    tune = ["tune={trials: 2, sampler: random}", "tune.parameters.model.dropout=[0.0, 0.1]", "tune.trials=1"]
    searched, *_ = load_grid(grid, given=tune).cells
    assert [*searched.search.space] == ["model.dropout"] and searched.search.tuning.trials == 1


def test_the_last_one_of_a_key_wins(grid):
    plan = load_grid(grid, given=["training.steps=100", "training.steps=200"])
    assert plan.cells[0].spec.training.steps == 200


def test_it_may_replace_an_axis(grid):
    plan = load_grid(grid, given=["axes.kernel=[cosine]", "axes.training.warmup=[1, 2]"])
    assert [(cell.spec.kernel, cell.spec.training.warmup) for cell in plan.cells] == [("cosine", 1), ("cosine", 2)]


def test_it_reaches_an_axis_of_one_sub_grid(tmp_path):
    file = tmp_path / "grid.yaml"
    file.write_text(
        "grids:\n  a: {axes: {training.steps: [10, 20]}}\n  b: {axes: {kernel: [rbf]}}\n" + TEXT[: TEXT.index("seeds")]
    )
    plan = load_grid(file, given=["grids.a.axes.training.steps=[30]"])
    assert [cell.spec.training.steps for cell in plan.cells if cell.labels["grid"] == "a"] == [30]


@pytest.mark.parametrize("removed", ["layers: {last: null}", "layers: null"])
def test_null_removes_a_choice_of_layers_of_the_extended_grid(grid, removed):
    grid.write_text(f"{TEXT}layers: {{last: {{kernel: cosine}}}}\n")
    (grid.parent / "other.yaml").write_text(f"extends: grid.yaml\n{removed}\n")
    assert not any(cell.spec.layers for cell in load_grid(grid.parent / "other.yaml").cells)


def test_conditions_hold_of_what_is_set_and_are_no_typos_where_it_makes_them_idle(grid):
    conditional = "exclude: {norm: pre}\noverrides: {when: {kernel: rbf}, set: {training.warmup: 1}}\nnorm: pre\n"
    grid.write_text(TEXT[: TEXT.index("axes")] + conditional)
    (cell,) = load_grid(grid, given=["kernel=rbf", "norm=post"]).cells
    assert cell.spec.training.warmup == 1
    (cell,) = load_grid(grid, given=["kernel=linear", "norm=post"]).cells
    assert cell.spec.training.warmup == 200
