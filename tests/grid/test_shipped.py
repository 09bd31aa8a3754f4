"""A grid is found by its path or by its name."""

import re

import pytest

from kdx.errors import Faults
from kdx.grid import shipped
from kdx.grid.load import load_grid


def test_every_shipped_grid_is_found_by_name():
    assert "quickstart" in shipped.names()
    for name in shipped.names():
        assert shipped.find(name) == shipped.folder() / f"{name}.yaml"
        assert shipped.find(name).is_file()


@pytest.mark.parametrize("name", shipped.names())
def test_a_shipped_grid_opens_with_its_number_of_runs_and_the_command(name):
    head = "".join(line for line in shipped.find(name).open() if line.startswith("#"))
    runs = re.search(r"(\d+) runs?\b", head)
    assert runs and int(runs[1]) == len(load_grid(name).runs)
    assert f"kdx sweep {name}" in head


def test_a_file_comes_before_a_shipped_grid_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").write_text("name: mine\n")
    assert shipped.find("quickstart").read_text() == "name: mine\n"


def test_a_relative_path_begins_where_it_is_told(tmp_path):
    (tmp_path / "base.yaml").touch()
    assert shipped.find("base.yaml", tmp_path) == tmp_path / "base.yaml"
    with pytest.raises(Faults):
        shipped.find("base.yaml", tmp_path / "elsewhere")


@pytest.mark.parametrize(
    "grid", ["quickstrt", "", ".", "..", "x" * 5000, "a\0b", "quickstart/../quickstart", "/root\n"]
)
def test_what_is_nowhere_is_refused_with_what_there_is(grid):
    with pytest.raises(Faults) as refusal:
        shipped.find(grid)
    assert "quickstart" in str(refusal.value)
