"""What `kdx show` says of a sweep; of many cells the first are listed."""

import yaml
from looked_after import DB, learned, of_two_kernels, shown, typed

from kdx.cli import show
from kdx.cli.context import Context
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database


def test_a_sweep_has_its_cells_and_what_varies_and_is_the_one_planned_last():
    runs = of_two_kernels()
    learned(runs[0], 6.0)
    found = shown()
    assert found == shown("tiny") == shown("grid.yaml")
    assert found["varies"]["kernel"] == ["rbf", "linear"] and found["seeds"] == [0, 1]
    assert [cell["choices"] for cell in found["cells"]] == [{"kernel": "rbf"}, {"kernel": "linear"}]
    assert [cell["selected"] for cell in found["cells"]] == [runs[0].id, None]
    lines = typed("show").stdout.splitlines()
    assert lines[0] == "sweep tiny"
    (row,) = [line.split() for line in lines if line.startswith(f"  {runs[0].cell_id[:8]}")]
    assert row[1:] == ["rbf", "1", "of", "2", str(runs[0].id), "0", "3.000", "2.000"]
    same = yaml.safe_load("\n".join(lines[lines.index("the same in all cells") + 1 :]))
    assert "kernel" not in same and same["training"]["steps"] == 10
    assert [cell["choices"] for cell in shown("tiny", "kernel=linear")["cells"]] == [{"kernel": "linear"}]


def test_of_many_cells_and_values_the_first_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(show, "MOST_CELLS", 3)
    rates = ", ".join(f"0.0{number}" for number in range(1, 10))
    (tmp_path / "grid.yaml").write_text(
        "name: many\ntask: translation\ndata: {corpus: synthetic-translation}\n"
        f"axes: {{training.learning_rate: [{rates}]}}\n"
    )
    plan = load_grid("grid.yaml")
    with open_database(DB, write=True, create=True) as database:
        sweep_id = recording.register(database, plan, plan.grid)
        lines = list(show.shown_sweep(database, sweep_id, (), Context(str(DB))).lines())
    assert sum(" of 1" in line for line in lines) == 3
    assert "  … and 6 more cells; kdx status many lists all runs" in lines
    (values,) = [line for line in lines if line.startswith("  training.learning_rate  0.01")]
    assert values.endswith("0.08, … (9 values)")
