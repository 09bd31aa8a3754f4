"""A kernel from a file beside the grid, from the grid to the table, and in the hands of somebody without the file."""

import csv
import io
import shutil
import sqlite3
from pathlib import Path

import pytest
from terminal import kdx

from kdx.errors import KdxError
from kdx.run_files.load_run import load_run

WORD = "my_kernels.py:Cauchy"


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory, write_own_kernel) -> Path:
    folder = write_own_kernel(tmp_path_factory.mktemp("trained") / "own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KDX_DATA", str(tmp_path_factory.getbasetemp() / "data-home"))
        _, said = kdx("sweep", "grid.yaml", "--workers", "1", folder=folder)
    assert f"note: runs the code of kernel {WORD}, from {folder}/my_kernels.py (source " in said
    return folder


@pytest.fixture
def trained(trained_once, tmp_path, components, data_home) -> Path:
    """A folder with a trained sweep of one run."""
    return shutil.copytree(trained_once, tmp_path / "own")


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


@pytest.mark.slow
def test_a_database_is_read_without_the_file(elsewhere):
    out, _ = kdx("report", "--format", "csv", folder=elsewhere)
    assert "accuracy" in out
    out, _ = kdx("query", "SELECT kernel FROM cells", folder=elsewhere)
    assert WORD in out
    kdx("export", "--to", "numbers", folder=elsewhere)
    kdx("db", "check", folder=elsewhere)
    assert WORD in (elsewhere / "numbers" / "cells.csv").read_text()


@pytest.mark.slow
def test_a_component_is_explained_and_claims_name_its_options_without_the_file(elsewhere):
    out, _ = kdx("explain", WORD, folder=elsewhere)
    assert "A heavy tail" in out and "bandwidth" in out and "above 0" in out
    _, said = kdx("explain", "their_kernels.py:Other", folder=elsewhere, code=2)
    assert "their_kernels.py" in said
    sides = f"a: {{kernel: '{WORD}', bandwidth: 1.0}}, b: {{kernel: rbf}}"
    lines = ["claims:", "  - id: heavy", "    statement: A heavy tail is better."]
    lines.append(f"    holds: {{all: [{{{sides}, expect: better}}]}}")
    (elsewhere / "claims.yaml").write_text("\n".join([*lines, ""]))
    out, _ = kdx("claims", "claims.yaml", folder=elsewhere)
    assert "A heavy tail is better." in out
    (elsewhere / "claims.yaml").write_text((elsewhere / "claims.yaml").read_text().replace("bandwidth", "bandwith"))
    _, said = kdx("claims", "claims.yaml", folder=elsewhere, code=2)
    assert "unknown factor `bandwith`" in said and "did you mean `bandwidth`?" in said


@pytest.mark.slow
def test_the_source_is_written_out_and_not_run(elsewhere, trained):
    _, said = kdx("export", "--components", "--to", "sources", folder=elsewhere)
    assert "nothing of them was run" in said
    for name in ("my_kernels.py", "helpers.py"):
        assert (elsewhere / "sources" / name).read_text() == (trained / name).read_text()
    _, said = kdx("export", "--components", "--to", "sources", folder=elsewhere, code=2)
    assert "this already exists" in said


@pytest.mark.slow
def test_who_goes_on_names_where_the_source_is(elsewhere, trained):
    _, said = kdx("retry", "1", folder=elsewhere, code=2)
    assert f"which is not in {elsewhere}" in said and "--components FOLDER" in said
    _, said = kdx("retry", "1", "--components", str(trained), "--workers", "1", folder=elsewhere)
    assert "runs the code of kernel" in said and "1 completed" in said


@pytest.mark.slow
def test_a_model_is_loaded_with_its_source_alone(trained, components):
    with pytest.raises(KdxError, match=f"its cells use `{WORD}`, which is not in {Path.cwd()}"):
        load_run(trained / "runs.db", 1)
    file = trained / "my_kernels.py"
    right = file.read_text()
    file.write_text(right.replace("1 +", "2 +"))
    with pytest.raises(KdxError, match="not the one that its cells were made with"):
        load_run(trained / "runs.db", 1, components=trained)
    file.write_text(right)
    assert load_run(trained / "runs.db", 1, components=trained).spec.kernel == WORD


@pytest.mark.slow
def test_a_file_that_was_moved_keeps_its_runs_and_is_shown_where_it_is(trained, tmp_path):
    (trained / "parts").mkdir()
    for name in ("my_kernels.py", "helpers.py"):
        (trained / name).rename(trained / "parts" / name)
    change(trained / "grid.yaml", WORD, f"parts/{WORD}")
    _, said = kdx("plan", "grid.yaml", folder=trained)
    assert "1 to skip" in said and "leave" not in said
    _, said = kdx("sweep", "grid.yaml", folder=trained)
    assert "1 run: 1 completed" in said
    out, _ = kdx("query", "SELECT kernel FROM cells", folder=trained)
    assert f"parts/{WORD}" in out
    kdx("db", "check", folder=trained)
    kdx("export", "--components", "--to", "sources", folder=trained)
    assert (trained / "sources" / "parts" / "my_kernels.py").is_file()
    kdx("retry", "1", "--workers", "1", folder=trained)
    with sqlite3.connect(trained / "runs.db") as connection:
        scores = connection.execute("SELECT test_score FROM run WHERE state = 'completed'").fetchall()
    assert len(scores) == 2 and len(set(scores)) == 1


@pytest.mark.slow
def test_a_component_that_fails_starts_nothing(own_kernel, data_home):
    (own_kernel / "helpers.py").write_text("import absent\nsquared_distance = None\n")
    _, said = kdx("sweep", "grid.yaml", folder=own_kernel, code=2)
    assert "error: helpers.py:1:1: `my_kernels.py:Cauchy` fails: ModuleNotFoundError: No module named 'absent'" in said
    assert not (own_kernel / "runs.db").exists()


@pytest.mark.slow
def test_a_finished_sweep_asks_for_no_code(own_kernel, data_home):
    with (own_kernel / "grid.yaml").open("a") as grid:
        grid.write("evaluations: {again: {split: valid}}\n")
    kdx("sweep", "grid.yaml", "--workers", "1", folder=own_kernel)
    _, said = kdx("resume", folder=own_kernel)
    assert "nothing is unfinished" in said
    with sqlite3.connect(own_kernel / "runs.db") as connection:
        connection.execute("DELETE FROM evaluation_document")
        connection.execute("DELETE FROM evaluation_metric")
        connection.execute("DELETE FROM evaluation")
    (own_kernel / "my_kernels.py").rename(own_kernel / "gone.py")
    _, said = kdx("resume", folder=own_kernel, code=2)
    assert f"its cells use `{WORD}`, which is not in {own_kernel}" in said and "--components FOLDER" in said
    (own_kernel / "gone.py").rename(own_kernel / "my_kernels.py")
    _, said = kdx("resume", folder=own_kernel)
    assert "runs the code of kernel" in said and "1 evaluation: 1 made" in said


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def one_message(said: str) -> bool:
    """Whether all lines but the first say what is allowed and what to do."""
    return all(line.startswith("  ") for line in said.splitlines()[1:])


@pytest.mark.slow
def test_a_package_brings_a_task_from_the_grid_to_the_table(own_task, data_home, monkeypatch, tmp_path):
    package = tmp_path / "site" / "tails"
    ran = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    (package / "tasks.py").write_text(ran + (package / "tasks.py").read_text())
    kdx("plan", "grid.yaml", folder=own_task)
    assert not (tmp_path / "ran").exists()
    _, said = kdx("sweep", "grid.yaml", "--workers", "1", folder=own_task)
    assert (tmp_path / "ran").exists()
    assert "runs the code of task majority, from tails 1.2" in said and "1 completed; 1 evaluation" in said
    here, _ = kdx("report", "--format", "csv", folder=own_task)
    monkeypatch.delenv("PYTHONPATH")
    there, _ = kdx("report", "--format", "csv", folder=own_task)
    rows = list(csv.DictReader(io.StringIO(there)))
    assert there == here and [row["evaluation"] for row in rows] == ["again"]
    assert all(row["metric"] == "test/confidence" and row["direction"] == "max" for row in rows)
    assert all(33 < float(row["mean"]) < 100 for row in rows)
    out, said = kdx("report", folder=own_task)
    assert "does not know" not in out + said
    claim = "{a: {kernel: rbf}, b: {kernel: exponential}, where: {task: majority}, metric: confidence, expect: better}"
    lines = ["claims:", "  - id: surer", "    statement: It is surer.", f"    holds: {{all: [{claim}]}}", ""]
    (own_task / "claims.yaml").write_text("\n".join(lines))
    out, said = kdx("claims", "claims.yaml", folder=own_task)
    assert "It is surer." in out and "unknown" not in said
    out, _ = kdx("trace", "sure", "exponential", folder=own_task)
    assert "confidence of evaluation again of sure, exponential" in out and "run 1, seed 0" in out
    kdx("export", "--components", "--to", "sources", folder=own_task)
    for name in ("tasks.py", "shares.py", "coins.py"):
        assert (own_task / "sources" / "tails" / name).read_text() == (package / name).read_text()


@pytest.mark.long
def test_who_goes_on_with_a_task_needs_its_package_with_the_same_source(own_task, data_home, monkeypatch, tmp_path):
    kdx("sweep", "grid.yaml", "--workers", "1", folder=own_task)
    with sqlite3.connect(own_task / "runs.db") as connection:
        connection.execute("DELETE FROM evaluation_document")
        connection.execute("DELETE FROM evaluation_metric")
        connection.execute("DELETE FROM evaluation")
    shares = tmp_path / "site" / "tails" / "shares.py"
    right = shares.read_text()
    shares.write_text(right.replace("max(-1)", "min(-1)"))
    _, said = kdx("resume", folder=own_task, code=2)
    assert "tails/tasks.py: the source of `majority` is not the one that its cells were made with" in said
    shares.write_text(right)
    with monkeypatch.context() as without:
        without.delenv("PYTHONPATH")
        _, said = kdx("resume", folder=own_task, code=2)
        assert "its cells use task `majority`, which no installed package provides" in said
    _, said = kdx("resume", folder=own_task)
    assert "1 evaluation: 1 made" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("tasks", "class Majority", "class Minority", "tails/tasks.py:1:1: no class `Majority`"),
        ("tasks", "(AnswerModule)", "", "tails/tasks.py:12:1: class `Majority` is no TaskModule, as every task is"),
    ],
)
def test_what_a_task_says_of_itself_is_checked_by_the_plan(own_task, data_home, tmp_path, file, old, new, message):
    change(tmp_path / "site" / "tails" / f"{file}.py", old, new)
    _, said = kdx("plan", "grid.yaml", folder=own_task, code=2)
    assert message in said and one_message(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "tasks",
            '"confidence": 100',
            '"sure": 100',
            "tails/tasks.py:12:1: `majority`: its class names the metric `confidence`, which a test pass does not give",
        ),
        ("tasks", '"confidence": "mean', '"sure": "mean', "its `definitions` do not say what `confidence` means"),
        ("shares", "softmax", "softmix", "tails/shares.py:2:1: `coins, majority` fails: AttributeError"),
    ],
)
def test_what_a_task_does_is_tried_before_a_run_starts(own_task, data_home, tmp_path, file, old, new, message):
    change(tmp_path / "site" / "tails" / f"{file}.py", old, new)
    _, said = kdx("sweep", "grid.yaml", folder=own_task, code=2)
    assert message in said and one_message(said.partition("error: ")[2])
    assert not (own_task / "runs.db").exists()


@pytest.mark.slow
def test_a_task_may_be_a_mapping_of_tasks_like_any_other(own_task, data_home):
    (own_task / "grid.yaml").write_text("tasks:\n  majority: {data: {corpus: coins}}\n  set: {data: {corpus: x}}\n")
    out, _ = kdx("plan", "grid.yaml", folder=own_task, code=2)
    (own_task / "grid.yaml").write_text("tasks:\n  majority: {data: {corpus: coins}}\n")
    out, _ = kdx("plan", "grid.yaml", folder=own_task)
    assert "majority" in out
