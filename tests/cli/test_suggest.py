"""Suggested commands name the folder of custom components where they must."""

from pathlib import Path

from grids import TINY

from kdx.cli.context import Context
from kdx.cli.suggest import computing_options, retry_runs
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database


def test_a_suggested_command_names_the_folder_of_custom_components(own_kernel, monkeypatch):
    monkeypatch.chdir(own_kernel)
    plan = load_grid("grid.yaml")
    here, above = Context("runs.db"), Context("../runs.db")
    with open_database("runs.db", write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
        assert computing_options(here, database, plan.name) == ""
        assert computing_options(here, database, plan.name, Path()) == " --components ."
        monkeypatch.chdir(own_kernel.parent)
        assert computing_options(here, database, plan.name) == ""
        Path("elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        assert computing_options(above, database, plan.name) == f" --components {own_kernel} --db ../runs.db"
        (own_kernel / "my_kernels.py").unlink()
        assert computing_options(above, database, plan.name) == " --components FOLDER --db ../runs.db"
        assert retry_runs(above, database, [1]) == "kdx retry 1 --components FOLDER --db ../runs.db"
        Path("plain.yaml").write_text(TINY % {"steps": 5, "seeds": 1})
        plain = load_grid("plain.yaml")
        recording.register(database, plain, plain.grid)
        assert computing_options(here, database, plain.name) == ""
