"""`kdx export` on a real database."""

import csv
import json
from pathlib import Path

import pytest
from looked_after import DB, checkpoints, claimed, completed, planned, refused, typed

from kdx.store import recording
from kdx.store.database import open_database
from kdx.store.sqlite.database import Sqlite
from kdx.training.checkpoint import CheckpointFiles

LINES = ["ein Haus", "zwei\nZeilen \x1b[31m", "=1+1"]


@pytest.fixture
def runs():
    """Three runs, of which two are completed and the second is selected."""
    made = planned(3)
    claimed(made[0])
    with open_database(DB, write=True) as database:
        hand = recording.RunWriter(database, made[0].id, "me", 1)
        hand.record([("valid/loss", 10, 2.5), ("valid/loss", 5, 3.5)], 10)
        hand.complete(2.5, 10, 2.5, {}, 10)
    completed(made[1], 2.25)
    return made


@pytest.fixture
def translated(runs):
    """The same runs; the selected one has translations."""
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER run_final_state")
        connection.exec_driver_sql(f"UPDATE run SET state = 'running' WHERE id = {runs[1].id}")
        connection.exec_driver_sql(database.statements[0])
    with open_database(DB, write=True) as database:
        hand = recording.RunWriter(database, runs[1].id, "me", 1)
        hand.outputs("test/translations", LINES)
        hand.complete(2.25, 10, 2.25, {}, 10)
    return runs


def table(name: str) -> list[dict[str, str]]:
    with Path("results", f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("old", "new"), [("kernel", "mine"), ("task", "dreaming")])
def test_a_cell_with_a_word_that_this_kdx_does_not_know_is_exported_as_it_is(runs, old, new, reword):
    with open_database(DB, write=True) as database, database.write() as connection:
        reword(connection, lambda cell: cell.update({old: new, "depth": 3}))
    typed("export", "tiny", "--to", "results")
    (cell,) = table("cells")
    assert (cell[old], json.loads(cell["spec"])["depth"]) == (new, 3)
    assert [run[old] for run in table("runs")] == [new] * 3


def test_cells_runs_and_curves_of_a_sweep(runs, folder):
    planned(1, name="other")
    done = typed("export", "tiny", "--to", "results")
    assert done.stdout.splitlines() == [f"results/{name}.csv" for name in ("cells", "runs", "curves")]
    assert done.stderr == "exported 1 cell and 3 runs of tiny, 1 of them selected\n"
    assert [(cell["sweep"], cell["cell_id"]) for cell in table("cells")] == [("tiny", runs[0].cell_id)]
    assert [(run["run_id"], run["state"], run["selected"]) for run in table("runs")] == [
        ("1", "completed", "0"),
        ("2", "completed", "1"),
        ("3", "pending", "0"),
    ]
    assert [(row["run_id"], row["step"], row["value"]) for row in table("curves")] == [
        ("1", "5", "3.5"),
        ("1", "10", "2.5"),
    ]


def test_all_of_it_is_of_one_state_of_the_database(translated, monkeypatch):
    begun = []
    real = Sqlite._begin
    monkeypatch.setattr(
        Sqlite, "_begin", lambda self, driver, mode: (begun.append(mode.value), real(self, driver, mode))[1]
    )
    typed("report")
    plain = len(begun)
    typed("export", "tiny", "--to", "results", "--weights", "--outputs")
    assert len(begun) == 2 * plain


def test_programs_get_the_names_of_the_files(runs):
    done = typed("export", "--to", "results", "--json")
    files = ["cells.csv", "runs.csv", "curves.csv"]
    assert json.loads(done.stdout) == {"sweep": "tiny", "folder": "results", "files": files}


def test_the_selected_runs_weights_and_translations(translated):
    typed("export", "--to", "results", "--weights", "--outputs")
    (weights,) = checkpoints(translated[1]).newest_first("best")
    assert Path("results/weights/run-2.ckpt").read_bytes() == weights.read_bytes()
    assert Path("results/outputs/run-2.txt").read_text() == "ein Haus\nzwei\\nZeilen \\x1b[31m\n=1+1\n"
    assert sorted(path.name for path in Path("results").rglob("*.*")) == [
        "cells.csv",
        "curves.csv",
        "run-2.ckpt",
        "run-2.txt",
        "runs.csv",
    ]


def test_what_is_not_there_is_refused_and_nothing_is_written(runs, folder):
    before = sorted(folder.rglob("*"))
    assert refused("export").problem == "there is no folder to write to"
    assert refused("export", "--to", "runs.files").problem == "this already exists"
    assert refused("export", "--to", "x", "--outputs").problem == "no selected run of `tiny` has test/translations"
    assert refused("export", "nonesuch", "--to", "x").problem == "there is no sweep `nonesuch`"
    assert refused("export", "--to", "x", "--db", "absent.db").exit_code == 3
    assert refused("export", "--to", "absent/x").exit_code == 3
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("--format wandb --to x --weights", "--to and --weights"),
        ("--format mlflow --tuned x", "--tuned"),
        ("--tuned x --format parquet --outputs", "--format and --outputs"),
        ("--components --to x --weights", "--weights"),
    ],
)
def test_options_that_do_not_go_together_are_named(runs, folder, words, out):
    assert refused("export", *words.split()).hint == f"leave {out} out"
    assert not (folder / "x").exists()


def test_weights_that_are_gone_or_damaged_are_told_and_nothing_is_written(runs, folder):
    (weights,) = checkpoints(runs[1]).newest_first("best")
    weights.write_bytes(b"\x00" + weights.read_bytes()[1:])
    fault = refused("export", "--to", "x", "--weights")
    assert (fault.exit_code, fault.problem) == (74, "this file does not match its checksum")
    assert weights.exists(), "and nothing is set aside"
    CheckpointFiles(weights.parent).keep("best")
    assert refused("export", "--to", "x", "--weights").problem == "runs without weights: 2"
    Path("runs.files").rename("away")
    fault = refused("export", "--to", "x", "--weights")
    assert fault.problem == "the folder with the files of its runs is missing" and "--files" in fault.hint
    assert not [path for path in folder.iterdir() if path.name.endswith("x")]
