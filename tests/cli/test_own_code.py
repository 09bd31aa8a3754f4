"""A kernel from a file beside the grid, from the grid to the table, and in the hands of somebody without the file."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from kdx.errors import KdxError
from kdx.run_files.load_run import load_run

WORD = "my_kernels.py:Cauchy"


def kdx(*arguments: str, folder: Path, code: int = 0) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-m", "kdx", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def trained(own_kernel, data_home) -> Path:
    """A folder with a trained sweep of one run."""
    _, said = kdx("sweep", "grid.yaml", "--workers", "1", folder=own_kernel)
    assert f"note: runs the code of kernel {WORD}, of a file (source " in said
    return own_kernel


@pytest.fixture
def elsewhere(trained, tmp_path) -> Path:
    """A folder with the database and its files alone."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    shutil.copy(trained / "runs.db", folder)
    shutil.copytree(trained / "runs.files", folder / "runs.files")
    return folder


def test_a_plan_is_made_without_running_the_part(own_kernel, data_home):
    file = own_kernel / "my_kernels.py"
    file.write_text("open('ran', 'w')\n" + file.read_text())
    _, said = kdx("plan", "grid.yaml", folder=own_kernel)
    assert "1 to start" in said and not (own_kernel / "ran").exists()


def test_a_database_is_read_without_the_file(elsewhere):
    out, _ = kdx("report", "--format", "csv", folder=elsewhere)
    assert "accuracy" in out
    out, _ = kdx("query", "SELECT kernel FROM cells", folder=elsewhere)
    assert WORD in out
    kdx("export", "--to", "numbers", folder=elsewhere)
    kdx("db", "check", folder=elsewhere)
    assert WORD in (elsewhere / "numbers" / "cells.csv").read_text()


def test_the_source_is_written_out_and_not_run(elsewhere, trained):
    _, said = kdx("export", "--parts", "sources", folder=elsewhere)
    assert "nothing of them was run" in said
    for name in ("my_kernels.py", "helpers.py"):
        assert (elsewhere / "sources" / name).read_text() == (trained / name).read_text()
    _, said = kdx("export", "--parts", "sources", folder=elsewhere, code=2)
    assert "there is something of this name" in said


def test_who_goes_on_names_where_the_source_is(elsewhere, trained):
    _, said = kdx("retry", "1", folder=elsewhere, code=2)
    assert "whose code this command would run" in said and "--parts FOLDER" in said
    _, said = kdx("retry", "1", "--parts", str(trained), "--workers", "1", folder=elsewhere)
    assert "runs the code of kernel" in said and "1 completed" in said


def test_a_model_is_loaded_with_its_source_alone(trained, own_parts):
    with pytest.raises(KdxError, match="whose code this command would run"):
        load_run(trained / "runs.db", 1)
    file = trained / "my_kernels.py"
    right = file.read_text()
    file.write_text(right.replace("1 +", "2 +"))
    with pytest.raises(KdxError, match="not the one that its cells were made with"):
        load_run(trained / "runs.db", 1, parts=trained)
    file.write_text(right)
    assert load_run(trained / "runs.db", 1, parts=trained).spec.kernel == WORD


def test_an_edited_part_makes_new_cells_and_leaves_the_old_runs(trained):
    file = trained / "my_kernels.py"
    file.write_text("# a comment\n" + file.read_text())
    _, said = kdx("plan", "grid.yaml", folder=trained)
    assert "0 to start" in said or "1 to skip" in said
    file.write_text(file.read_text().replace("1 +", "2 +"))
    _, said = kdx("plan", "grid.yaml", folder=trained)
    assert "1 to start" in said and "1 run" in said.partition("note:")[2]


def test_a_part_that_fails_starts_nothing(own_kernel, data_home):
    (own_kernel / "helpers.py").write_text("import absent\nsquared_distance = None\n")
    _, said = kdx("sweep", "grid.yaml", folder=own_kernel, code=2)
    assert "error: helpers.py:1:1: `my_kernels.py:Cauchy` fails: ModuleNotFoundError: No module named 'absent'" in said
    assert not (own_kernel / "runs.db").exists()


def test_a_finished_sweep_asks_for_no_code(own_kernel, data_home):
    with (own_kernel / "grid.yaml").open("a") as grid:
        grid.write("evaluations: {again: {split: valid}}\n")
    kdx("sweep", "grid.yaml", "--workers", "1", folder=own_kernel)
    _, said = kdx("resume", folder=own_kernel)
    assert "nothing is unfinished" in said
    with sqlite3.connect(own_kernel / "runs.db") as connection:
        connection.execute("DELETE FROM evaluation_metric")
        connection.execute("DELETE FROM evaluation")
    _, said = kdx("resume", folder=own_kernel, code=2)
    assert "whose code this command would run" in said
