"""The database of a command: how it is opened, and how suggested commands name it."""

from pathlib import Path

import pytest
from grids import TINY

from kdx.cli import context as module
from kdx.cli.context import Context
from kdx.cli.options import DATABASE, name_folder
from kdx.cli.suggest import computing_options, retry_runs
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database
from kdx.store.refusals import FILES


@pytest.mark.parametrize(
    ("database", "option"),
    [(DATABASE, ""), ("my runs.db", " --db 'my runs.db'"), ("sqlite:///x.db", " --db sqlite:///x.db")],
)
def test_a_suggested_command_names_the_database_where_it_must(database, option):
    assert Context(database).options == option
    assert Context(database).command("report", "tiny") == f"kdx report tiny{option}"


def test_a_suggested_command_names_the_folder_of_files_that_the_environment_did_not(monkeypatch, tmp_path):
    monkeypatch.setenv(FILES, "")
    name_folder(None)
    assert Context(DATABASE).options == ""
    name_folder(Path("big disk"))
    assert Context("x.db").options == f" --db x.db --files '{tmp_path}/big disk'"
    monkeypatch.setattr(module, "_FILES_BEFORE", "big disk")
    assert Context("x.db").options == " --db x.db"


def test_a_suggested_command_names_the_folder_of_custom_components(own_kernel, monkeypatch):
    monkeypatch.chdir(own_kernel)
    plan = load_grid("grid.yaml")
    here, above = Context("runs.db"), Context("../runs.db")
    with open_database("runs.db", write=True, create=True) as database:
        recording.register(database, plan)
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
        recording.register(database, plain)
        assert computing_options(here, database, plain.name) == ""
