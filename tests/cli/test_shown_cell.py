"""What `kdx show` shows of a cell."""

from looked_after import learned, of_two_kernels, shown, typed


def test_a_cell_has_its_seeds_and_the_selected_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = of_two_kernels()
    cell = runs[0].cell_id
    mine = [run for run in runs if run.cell_id == cell]
    for run, loss in zip(mine, (6.0, 4.0), strict=True):
        learned(run, loss)
    found = shown(cell[:6])
    assert found["cell"] == cell and found["selected"] == mine[1].id
    assert [(run["seed"], run["valid_score"]) for run in found["runs"]] == [(0, 3.0), (1, 2.0)]
    text = typed("show", cell[:6]).stdout
    assert f"selected  run {mine[1].id}, by valid/loss" in text
    assert [run["run"] for run in shown(cell, "seed=1")["runs"]] == [mine[1].id]
