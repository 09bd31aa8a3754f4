"""The database of a command: how it is opened, and how suggested commands name it."""

from pathlib import Path

import pytest

from kdx.cli import context as module
from kdx.cli.context import Context
from kdx.cli.options import DATABASE, name_folder
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
