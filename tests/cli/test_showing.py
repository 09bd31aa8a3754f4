"""Of many cells the first are listed; tests/cli/test_show.py has the rest."""

from looked_after import DB

from kdx.cli import showing
from kdx.cli.showing import ShownSweep
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database


def test_of_many_cells_and_values_the_first_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(showing, "MOST_CELLS", 3)
    rates = ", ".join(f"0.0{number}" for number in range(1, 10))
    (tmp_path / "grid.yaml").write_text(
        "name: many\ntask: translation\ndata: {corpus: synthetic-translation}\n"
        f"axes: {{training.learning_rate: [{rates}]}}\n"
    )
    plan = load_grid("grid.yaml")
    with open_database(DB, write=True, create=True) as database:
        sweep_id = recording.register(database, plan, plan.grid)
        lines = list(ShownSweep(database, sweep_id, ()).lines("runs.db"))
    assert sum(" of 1" in line for line in lines) == 3
    assert "  … and 6 more cells; kdx status many lists all runs" in lines
    (values,) = [line for line in lines if line.startswith("  training.learning_rate  0.01")]
    assert values.endswith("0.08, … (9 values)")
