"""`kdx show` says what a run, a cell or a sweep is, and draws curves."""

import json
import math
from pathlib import Path

import pytest
import yaml
from grids import TINY
from looked_after import DB, claimed, completed, planned, refused, typed
from sqlalchemy import insert

from kdx.grid.load import load_grid
from kdx.run_files.files import files_beside, log_of
from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunRecord
from kdx.store.schema import cell_migration
from kdx.sweep.lease_holder import lease_holder


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def learned(run: RunRecord, loss: float) -> None:
    """A completed run with curves, a test and a log."""
    claimed(run, owner=lease_holder())
    with open_database(DB, write=True) as database:
        writer = RunWriter(database, run.id, reading.load_run(database, run.id).owner or "", 1)
        writer.begin({"torch": "2.13", "host": "here"}, "data", "code", 0, None, {})
        rows = [("train/loss", step, loss / step) for step in range(1, 11)]
        writer.record([*rows, ("valid/loss", 5, loss), ("valid/loss", 10, loss / 2), ("test/loss", 10, loss / 3)], 10)
        writer.complete(loss / 2, 10, loss / 3, {}, 10)
        log = log_of(files_beside(database.location), run)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("step 1\n")


def of_two_kernels(seeds: int = 2) -> tuple[RunRecord, ...]:
    Path("grid.yaml").write_text(TINY % {"steps": 10, "seeds": seeds} + "axes: {kernel: [rbf, linear]}\n")
    plan = load_grid("grid.yaml")
    with open_database(DB, write=True, create=True) as database:
        return reading.runs(database, recording.register(database, plan, plan.grid))


def shown(*words: str):
    return json.loads(typed("show", *words, "--json").stdout)


def test_a_run_has_its_settings_scores_attempts_place_files_and_log():
    first, *_ = of_two_kernels()
    learned(first, 6.0)
    text = typed("show", str(first.id)).stdout
    lines = text.splitlines()
    assert lines[0] == f"run {first.id}: rbf · seed 0, completed"
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1 : lines.index("")]}
    assert facts["cell"] == first.cell_id and facts["sweeps"] == "tiny" and facts["step"] == "10 of 10"
    assert facts["scores"] == "valid/loss 3 at step 10, test/loss 2"
    assert facts["ran"] == "on  host here, torch 2.13" and facts["files"] == "log.txt (7 bytes)"
    assert Path(facts["log"]).read_text() == "step 1\n"
    assert "process" in text and " here" in text
    settings = yaml.safe_load(text.partition("settings, of which vary: kernel, temperature\n")[2])
    assert next(iter(settings)) == "kernel" and settings["training"]["steps"] == 10
    found = shown(str(first.id))
    assert (found["run"], found["state"], found["metrics"]) == (first.id, "completed", {"test/loss": 2.0})
    assert found["settings"]["kernel"] == "rbf" and found["varies"] == ["kernel", "temperature"]
    assert found["sweeps"] == [{"sweep": "tiny", "choices": {"kernel": "rbf"}}]
    (attempt,) = found["attempts"]
    assert attempt["outcome"] == "completed" and attempt["machine"] and attempt["process"]
    assert found["files"] == [{"name": "log.txt", "kind": "log", "bytes": 7}] and found["log"] == facts["log"]


def test_what_people_said_of_a_run_is_shown_with_it_its_cell_and_its_sweep():
    first, *_ = planned(2)
    completed(first)
    typed("invalidate", str(first.id), "--why", "the corpus was cut")
    typed("note", str(first.id), "look again", "--tag", "odd")
    typed("note", "tiny", "before the cut", "--tag", "baseline")
    sweep = typed("show", "tiny").stdout
    with open_database(DB, write=True) as database:
        (again,) = recording.repeat(database, [first.id])
    run, cell = (typed("show", word).stdout for word in (str(first.id), first.cell_id))
    for text in (run, cell):
        assert "the corpus was cut" in text and "odd" in text and "look again (" in text
    assert f"run {again}, pending, is a newer generation" in run
    assert "newer generation" not in typed("show", str(again)).stdout
    assert f"run {first.id} (the corpus was cut)" in sweep
    assert "baseline" in sweep and "before the cut (" in sweep
    found = shown(str(first.id))
    assert (found["invalidated"], found["tags"], found["newer"]) == ("the corpus was cut", ["odd"], again)
    assert [one["text"] for one in found["notes"]] == ["look again"]
    assert shown(str(again))["newer"] is None and shown(str(again))["invalidated"] is None
    by_id = {one["run"]: one for one in shown(first.cell_id)["runs"]}
    assert (by_id[first.id]["invalidated"], by_id[first.id]["tags"]) == ("the corpus was cut", ["odd"])
    assert (shown("tiny")["tags"], [one["text"] for one in shown("tiny")["notes"]]) == (
        ["baseline"],
        ["before the cut"],
    )


def test_a_cell_is_found_by_an_id_that_it_had_before():
    first, *_ = planned(1)
    former = "f" * 32
    with open_database(DB, write=True) as database, database.write() as connection:
        row = {"made": 1.0, "former_id": former, "cell_id": first.cell_id, "former_spec": "{}", "change": "a → b"}
        connection.execute(insert(cell_migration), [row])
    for word in (former, "ffff"):
        assert shown(word)["cell"] == first.cell_id
    assert shown(former)["former_cells"] == shown(str(first.id))["former_cells"] == [former]
    assert shown("tiny")["cells"][0]["former_cells"] == [former]
    assert f"former ids  {former}" in " ".join(typed("show", former).stdout.splitlines())


def test_a_run_that_never_began_says_no_more_than_there_is():
    first, *_ = planned(1)
    found = shown(str(first.id))
    assert (found["state"], found["attempts"], found["files"], found["log"]) == ("pending", [], [], None)
    assert "log" not in typed("show", str(first.id)).stdout.partition("\n\n")[0].replace("of 10", "")


def test_a_cell_has_its_seeds_and_the_selected_one():
    runs = of_two_kernels()
    cell = runs[0].cell_id
    mine = [run for run in runs if run.cell_id == cell]
    for run, loss in zip(mine, (6.0, 4.0), strict=True):
        learned(run, loss)
    found = shown(cell[:6])
    assert found["cell"] == cell and found["selected"] == mine[1].id
    assert [(run["seed"], run["valid_score"]) for run in found["runs"]] == [(0, 3.0), (1, 2.0)]
    text = typed("show", cell[:6]).stdout
    assert f"selected  run {mine[1].id}, by valid/loss" in text
    assert [run["run"] for run in shown(cell, "seed=1")["runs"]] == [mine[1].id]


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
    assert row[1:] == ["rbf", "1", "of", "2", str(runs[0].id), "0", "3.0", "2.0"]
    same = yaml.safe_load("\n".join(lines[lines.index("the same in all cells") + 1 :]))
    assert "kernel" not in same and same["training"]["steps"] == 10
    assert [cell["choices"] for cell in shown("tiny", "kernel=linear")["cells"]] == [{"kernel": "linear"}]


def test_curves_are_those_of_the_selected_runs_one_over_the_other():
    runs = of_two_kernels()
    for number, run in enumerate(runs, 2):
        learned(run, float(number))
    text = typed("show", "tiny", "--curves").stdout
    best = [
        min((run for run in runs if run.cell_id == cell), key=lambda run: run.id)
        for cell in dict.fromkeys(r.cell_id for r in runs)
    ]
    assert text.index("valid/loss") < text.index("train/loss")
    for letter, run in zip("ab", best, strict=True):
        assert text.count(f"\n{letter}  run {run.id} · ") == 2
    found = shown("tiny", "train/loss", "--curves")["curves"]
    assert [(one["metric"], one["steps"], one["values"][0]) for one in found] == [
        ("train/loss", [*range(1, 11)], 2.0),
        ("train/loss", [*range(1, 11)], 3.0),
    ]
    of_a_cell = typed("show", runs[0].cell_id, "--curves").stdout
    assert all(f"run {run.id} · seed {run.seed}" in of_a_cell for run in runs if run.cell_id == runs[0].cell_id)
    assert f"●  run {runs[0].id}: last" in typed("show", str(runs[0].id), "--curves").stdout


def test_a_curve_that_is_not_finite_is_null_in_json():
    (first,) = planned(1)
    claimed(first)
    with open_database(DB, write=True) as database:
        RunWriter(database, first.id, "me", 1).record([("train/loss", 1, math.nan)], 1)
    (curve,) = shown(str(first.id), "--curves")["curves"]
    assert curve["values"] == [None]


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "SVG"])
def test_the_same_figure_goes_into_a_file(suffix):
    (first,) = planned(1)
    learned(first, 6.0)
    said = typed("show", str(first.id), "--to", f"figure.{suffix}")
    assert said.stdout == f"figure.{suffix}\n" and said.stderr == "drew 2 curves of valid/loss, train/loss\n"
    assert Path(f"figure.{suffix}").stat().st_size > 1000
    again = refused("show", str(first.id), "--to", f"figure.{suffix}")
    assert again.problem == "there is something of this name"


def test_bad_input_has_one_message_with_what_was_meant():
    first, *_ = of_two_kernels()
    assert refused("show", "999").problem == "there is no run 999"
    assert refused("show", "tinny").hint == "did you mean `tiny`?"
    assert refused("show", "tiny", "kernl=rbf").hint == "did you mean `kernel`?"
    assert refused("show", "tiny", "kernel=rfb").hint == "did you mean `rbf`?"
    assert refused("show", str(first.id), "seed=0").problem == f"`seed=0` chooses among runs, and run {first.id} is one"
    assert refused("show", "tiny", "--to", "figure.sgv").hint == "did you mean `.svg`?"
    assert refused("show", "tiny", "--to", "figure").hint == "such as figure.svg"
    assert refused("show", "tiny", "--to", "figure.svg", "--json").problem == "--to and --json exclude each other"
    assert refused("show", "tiny", "valid/loss").hint == "--curves draws a metric"
    assert refused("show", "tiny", "--curves").problem == "there is no curve yet"
    learned(first, 6.0)
    assert refused("show", "tiny", "--curves", "valid/los").hint == "did you mean `valid/loss`?"
    assert refused("show", "runs.db").hint == "kdx show --db runs.db"


def test_nothing_is_shown_of_the_files_of_another_database():
    (first,) = planned(1)
    completed(first)
    folder = files_beside(DB)
    (folder / "database.json").write_text(json.dumps({"id": "f" * 32, "path": "/elsewhere/runs.db"}))
    assert shown(str(first.id))["files"] == []


def test_names_of_another_database_act_on_no_terminal():
    planned(1)
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE sweep SET name = ?", ("a\x1b[2Jb",))
        connection.exec_driver_sql("UPDATE sweep_cell SET labels = ?", (json.dumps({"kernel\x1b": "\x07rbf"}),))
    assert not {"\x1b", "\x07"} & set(typed("show").stdout)
