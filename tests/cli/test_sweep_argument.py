"""A sweep by its name, by its grid file, or the one planned last."""

from pathlib import Path

import pytest
from looked_after import planned, refused

from kdx.cli.context import Context
from kdx.cli.sweep_argument import load_named
from kdx.store.database import open_database


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planned(1)


@pytest.mark.parametrize("sweep", [None, "tiny", "grid.yaml"])
def test_a_sweep_goes_by_its_name_or_its_grid_file_or_is_the_last(sweep):
    with open_database("runs.db", write=False) as database:
        assert load_named(database, sweep, Context("runs.db")).name == "tiny"


def test_a_database_in_the_place_of_a_sweep_is_told_apart():
    fault = refused("report", "runs.db")
    assert str(fault) == "`runs.db` is a database, not a sweep\n  hint: name it with --db runs.db"
    Path("text").write_text("no database")
    assert refused("report", "text").problem == "there is no sweep `text`"
