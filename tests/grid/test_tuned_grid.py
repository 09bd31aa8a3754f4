"""Winners as a grid that tunes nothing."""

from dataclasses import replace

import pytest

from kdx.errors import KdxError
from kdx.grid.identity import cell_id
from kdx.grid.load import load_grid
from kdx.grid.tuned_grid import tuned_grid

GRID = """\
task: translation
data: {corpus: synthetic-translation}
overrides: [{when: {kernel: rbf}, set: {training.warmup: 7}}]
AXES
tune: {parameters: {model.dropout: [0.0, 0.1, 0.3]}, trials: 3}
"""
AXES = ["axes: {kernel: [rbf, linear]}", "approaches: {One: {kernel: rbf}, Two: {kernel: linear}}"]


def won(tmp_path, axes: str, **asked):
    (tmp_path / "grid.yaml").write_text(GRID.replace("AXES", axes))
    plan = load_grid(tmp_path / "grid.yaml", **asked)
    specs = [cell.search.cell({"model.dropout": value}) for cell, value in zip(plan.cells, (0.3, 0.1), strict=True)]
    cells = (replace(cell, id=cell_id(spec), spec=spec, won=True) for cell, spec in zip(plan.cells, specs, strict=True))
    return replace(plan, cells=tuple(cells))


@pytest.mark.parametrize("axes", AXES)
def test_it_has_the_cells_of_the_winners_and_their_names(tmp_path, axes):
    plan = won(tmp_path, axes)
    file = tmp_path / "tuned.yaml"
    file.write_bytes(tuned_grid(plan, file))
    tuned = load_grid(file)
    assert not tuned.searched
    assert [(cell.id, cell.labels) for cell in tuned.cells] == [(cell.id, cell.labels) for cell in plan.cells]


@pytest.mark.parametrize("axes", [*AXES, "description: one cell"])
def test_what_was_set_on_the_command_line_is_in_it(tmp_path, axes):
    given, seeds = ("training.steps=77", "model.width=32", "description=mine"), (4, 5)
    if axes in AXES:
        plan = won(tmp_path, axes, given=given, seeds=seeds)
    else:
        (tmp_path / "grid.yaml").write_text(
            GRID.replace("AXES", axes).replace("{kernel: rbf}", "{kernel: exponential}")
        )
        (cell,) = load_grid(tmp_path / "grid.yaml", given=given, seeds=seeds).cells
        spec = cell.search.cell({"model.dropout": 0.3})
        won_cell = replace(cell, id=cell_id(spec), spec=spec, won=True)
        plan = replace(load_grid(tmp_path / "grid.yaml", given=given, seeds=seeds), cells=(won_cell,))
    file = tmp_path / "tuned.yaml"
    file.write_bytes(tuned_grid(plan, file))
    tuned = load_grid(file)
    assert [cell.id for cell in tuned.cells] == [cell.id for cell in plan.cells]
    assert {cell.spec.training.steps for cell in tuned.cells} == {77}
    assert (tuned.seeds, tuned.description) == ((4, 5), "mine")


def test_a_plan_of_no_file_is_refused(tmp_path):
    with pytest.raises(KdxError, match="of no file"):
        tuned_grid(replace(won(tmp_path, AXES[0]), file=""), tmp_path / "tuned.yaml")
