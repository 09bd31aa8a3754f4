"""A sweep shows every plan that it has had, with its grid as written."""

import json

import pytest
from grids import TINY
from typer.testing import CliRunner

from kdx.cli.app import app
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database

GRID = TINY % {"steps": 10, "seeds": 2} + "axes: {kernel: [exponential, rbf]}  # two of them\n"


@pytest.fixture(autouse=True)
def planned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base, grid = tmp_path / "base.yaml", tmp_path / "grid.yaml"
    with open_database("runs.db", write=True, create=True) as database:
        for text in (GRID, f"# fewer\n{GRID}".replace("exponential, rbf", "rbf"), GRID.replace("two", "both")):
            base.write_text(text)
            grid.write_text("extends: base.yaml\nname: tiny\n")
            plan = load_grid(grid)
            recording.register(database, plan, plan.grid)


def show(*arguments: str):
    result = CliRunner().invoke(app, ["show", *arguments])
    if isinstance(result.exception, KdxError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_each_plan_is_shown_with_what_changed_and_every_file_as_written():
    shown = show("tiny", "--plans").splitlines()
    heads = [line.partition(": ")[2] for line in shown if line.startswith("plan ")]
    assert heads == ["2 cells × 2 seeds", "1 cell × 2 seeds", "2 cells × 2 seeds"]
    assert [line for line in shown if line.startswith("  changed")] == [
        "  changed: kernel: without exponential",
        "  changed: kernel: also exponential",
    ]
    assert shown[1:4] == ["  grid.yaml:", "    extends: base.yaml", "    name: tiny"]
    assert "    # fewer" in shown and "    axes: {kernel: [exponential, rbf]}  # two of them" in shown


def test_programs_get_every_plan():
    told = json.loads(show("tiny", "--plans", "--json"))
    assert told["sweep"] == "tiny"
    assert [(one["plan"], len(one["cells"]), one["runs_gone"]) for one in told["plans"]] == [
        (1, 2, 0),
        (2, 1, 2),
        (3, 2, 0),
    ]
    assert told["plans"][0]["changes"] is None
    assert told["plans"][2]["sources"]["base.yaml"].endswith("# both of them\n")


def test_only_a_sweep_has_plans():
    with pytest.raises(KdxError, match="--plans are those of a sweep as a whole"):
        show("1", "--plans")
    with pytest.raises(KdxError, match="as a whole"):
        show("tiny", "kernel=rbf", "--plans")


def test_a_plan_of_an_older_kdx_has_no_grid():
    with open_database("runs.db", write=True) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE plan SET sources = '{}', grid = '{}' WHERE id = 1")
    assert "  its grid was not recorded" in show("tiny", "--plans").splitlines()
