"""`kdx plan` says what would be done, run by run, and does none of it."""

import json
import random
import re
import shutil

import pytest
from grids import PLANTED, TINY
from looked_after import refused, typed

from kdx.errors import DatabaseError, Faults, KdxError
from kdx.grid.load import load_grid
from kdx.run_files.files import files_beside, folder_of
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.training.checkpoint import CheckpointFiles
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train

GRID = TINY % {"steps": 10, "seeds": 2} + "axes: {kernel: [exponential, rbf]}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, data_home):
    (tmp_path / "grid.yaml").write_text(GRID)
    return tmp_path


def plan(*arguments: str, **environment: str):
    """The result of the command, which has to succeed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        return typed("plan", *arguments)


def record(state: str, seed: int, kernel: str, checkpoint: int | None = None, **how) -> None:
    """A run of the grid that is in some state, perhaps with a checkpoint to go on from."""
    wanted = load_grid("grid.yaml")
    with open_database("runs.db", write=True, create=True) as database:
        recording.register(database, wanted)
        sweep = reading.load_sweep(database)
        (cell,) = [cell.id for cell in sweep.cells if cell.labels["kernel"] == kernel]
        (run,) = [run for run in sweep.runs if (run.cell_id, run.seed) == (cell, seed)]
        attempt = claims.claim(database, run.id, "me", 60.0)
        assert attempt is not None
        writer = recording.RunWriter(database, run.id, "me", attempt)
        if checkpoint is not None:
            writer.checkpoint(checkpoint)
        getattr(writer, state)(**how)
        if checkpoint is not None:
            CheckpointFiles(files_beside(database.location) / folder_of(run)).write("step", checkpoint, {})


def test_every_run_is_told_with_its_reason_and_the_command_that_starts_them(folder):
    result = plan("grid.yaml", "--all")
    first, *others, cost = result.stdout.splitlines()
    assert first.startswith("start     ") and first.endswith(" exponential · seed 0  (new)") and len(others) == 3
    assert cost.startswith("4 runs to train; time: unknown")
    assert result.stderr == "4 runs of 2 cells × 2 seeds: 4 to start; next: kdx sweep grid.yaml\n"
    assert [path.name for path in folder.iterdir()] == ["grid.yaml"], "it has written something"


def test_a_cell_that_has_two_names_counts_once(folder):
    with (folder / "grid.yaml").open("a") as file:
        file.write("approaches: {A: {position: none}, B: {position: none, placement: [encoder-self]}}\n")
    note, counts = plan("grid.yaml").stderr.splitlines()
    assert note == "note: `approach` makes no difference to any cell"
    assert counts.startswith("4 runs of 2 cells × 2 seeds: 4 to start; ")


def test_json_has_every_run_with_action_and_reason():
    record("complete", 1, "rbf", valid_score=3.5, valid_step=5, test_score=3.0, definitions={}, last_step=10)
    record("interrupt", 0, "rbf", checkpoint=6, last_step=7)
    record("fail", 0, "exponential", error="boom\x1b[2J", traceback="…", last_step=0)
    shown = json.loads(plan("grid.yaml", "--json").stdout)
    assert (shown["sweep"], shown["leaving"]) == ("tiny", {"runs": 0, "cells": [], "seeds": [], "changes": []})
    assert [(run["choices"]["kernel"], run["seed"], run["action"], run["reason"]) for run in shown["runs"]] == [
        ("exponential", 0, "skip", "failed: boom\x1b[2J"),
        ("rbf", 0, "continue", "from its checkpoint at step 6: interrupted at step 7"),
        ("exponential", 1, "start", "not started yet"),
        ("rbf", 1, "skip", "completed, validation score 3.500"),
    ]
    assert [run["cell"] for run in shown["runs"][:2]] == [cell.id for cell in load_grid("grid.yaml").cells]


def test_an_error_that_was_recorded_cannot_drive_the_terminal():
    record("fail", 0, "rbf", error="boom\x1b[2J", traceback="…", last_step=0)
    assert "failed: boom\\x1b[2J" in plan("grid.yaml").stdout


def test_the_database_is_only_read(folder):
    record("interrupt", 0, "rbf", last_step=7)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "runs.db").chmod(0o444)
    plan("grid.yaml", "--set", "seeds=5")
    plan("grid.yaml", "--set", "seeds=1")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_run_whose_checkpoint_is_gone_is_told_to_begin_again(folder):
    record("interrupt", 0, "rbf", checkpoint=8, last_step=9)
    (line,) = [line for line in plan("grid.yaml", "--all").stdout.splitlines() if "interrupted" in line]
    assert line.startswith("continue  ") and line.endswith(
        "rbf · seed 0  (from its checkpoint at step 8: interrupted at step 9)"
    )
    shutil.rmtree(folder / "runs.files")
    (line,) = [line for line in plan("grid.yaml", "--all").stdout.splitlines() if "interrupted" in line]
    assert line.startswith("start     ")
    assert line.endswith("(starts again: interrupted at step 9, but no checkpoint is left)")


def test_runs_that_leave_the_sweep_are_told_with_the_reason(folder):
    record("interrupt", 0, "rbf", last_step=7)
    (folder / "grid.yaml").write_text(GRID.replace("steps: 10", "steps: 80"))
    note, _ = plan("grid.yaml").stderr.splitlines()
    assert note == (
        "note: 4 runs of 2 cells leave sweep `tiny` (training.steps: 10 → 80); nothing is deleted;"
        " list them with: kdx query \"SELECT * FROM former_runs WHERE sweep = 'tiny'\""
    )
    leaving = json.loads(plan("grid.yaml", "--json").stdout)["leaving"]
    assert (leaving["runs"], leaving["seeds"]) == (4, [])
    assert leaving["changes"] == [{"field": "training.steps", "gone": ["10"], "new": ["80"]}]
    (folder / "grid.yaml").write_text(GRID.replace("seeds: 2", "seeds: 1"))
    assert "note: 2 runs of 2 cells leave sweep `tiny` (seeds: without 1); " in plan("grid.yaml").stderr
    assert json.loads(plan("grid.yaml", "--json").stdout)["leaving"]["seeds"] == [1]


def test_what_a_sweep_would_refuse_is_refused(folder):
    record("interrupt", 0, "rbf", last_step=7)
    (folder / "other.yaml").write_text(GRID.replace("steps: 10", "steps: 80"))
    with pytest.raises(KdxError, match=r"^other\.yaml: sweep `tiny` in runs\.db is another grid's"):
        plan("other.yaml")
    for text in (GRID.replace("corpus: synthetic-translation", "corpus: sintetic"), PLANTED):
        (folder / "other.yaml").write_text(text)
        with pytest.raises(Faults) as planned:
            plan("other.yaml")
        swept = refused("sweep", "other.yaml", "--db", "new.db")
        assert str(planned.value) == str(swept) and str(swept).startswith("other.yaml:")
        assert not (folder / "new.db").exists()


def test_what_is_to_be_said_of_the_data_is_said_as_by_a_sweep(folder):
    (folder / "grid.yaml").write_text(GRID.replace("train_lines: 300", "train_lines: 300, max_tokens: 8"))
    assert re.match(r"note: synthetic-translation: \d+ of 300 training pairs are left out", plan("grid.yaml").stderr)


def test_the_command_that_it_ends_with_repeats_the_options():
    shown = plan("grid.yaml", "--set", "seeds=[0, 7]", "--max-runs", "9", "--db", "other runs.db").stderr
    assert shown.endswith("next: kdx sweep grid.yaml --set 'seeds=[0, 7]' --max-runs 9 --db 'other runs.db'\n")


def test_the_database_may_come_from_the_environment(folder):
    record("interrupt", 0, "rbf", checkpoint=7, last_step=7)
    (folder / "runs.db").rename(folder / "other.db")
    (folder / "runs.files").rename(folder / "other.files")
    shown = json.loads(plan("grid.yaml", "--set", "seeds=1", "--json", KDX_DB="other.db").stdout)
    assert [(run["seed"], run["action"]) for run in shown["runs"]] == [(0, "start"), (0, "continue")]
    with pytest.raises(Faults, match="4 runs\n  allowed: at most 3"):
        plan("grid.yaml", "--max-runs", "3")


def test_what_is_wrong_is_refused(folder):
    (folder / "planted.yaml").write_text(PLANTED)
    with pytest.raises(Faults) as refusal:
        plan("planted.yaml")
    assert len(refusal.value.faults) == 3
    with pytest.raises(KdxError, match="--set seeds=x: "):
        plan("grid.yaml", "--set", "seeds=x")
    (folder / "runs.db").write_text("this is no database" * 100)
    with pytest.raises(DatabaseError, match=r"runs\.db: this file is not a database"):
        plan("grid.yaml")


def test_json_tells_what_each_run_is_what_cells_cost_and_where_texts_are():
    record("complete", 1, "rbf", valid_score=3.5, valid_step=5, test_score=3.0, definitions={}, last_step=10)
    shown = json.loads(plan("grid.yaml", "--json", "--workers", "2").stdout)
    assert [run["status"] for run in shown["runs"]] == ["new", "new", "new", "reused"]
    assert [(cell["to_train"], cell["basis"]) for cell in shown["cells"]] == [(2, "size"), (1, "cell")]
    assert shown["cost"]["workers"] == 2 and shown["cost"]["seconds"] >= 0 and shown["cost"]["cells_unknown"] == 0
    corpus = {"corpus": "synthetic-translation", "state": "generated", "place": "grid.yaml:4:16"}
    assert shown["corpora"] == [corpus]


def test_json_of_a_grid_that_tunes_does_not_say_that_it_costs_nothing(folder):
    with (folder / "grid.yaml").open("a") as file:
        file.write("tune: {parameters: {training.learning_rate: [1e-3, 1e-2]}, trials: 2, sampler: random}\n")
    shown = json.loads(plan("grid.yaml", "--json").stdout)
    assert (shown["cells_to_search"], shown["runs"], shown["cost"]["seconds"]) == (2, [], None)


def test_a_text_that_is_missing_is_all_that_is_shown(folder):
    (folder / "grid.yaml").write_text(GRID.replace("synthetic-translation", "multi30k"))
    assert str(refused("plan", "grid.yaml")).startswith("grid.yaml:4:16: corpus `multi30k` is not prepared")


@pytest.mark.slow
def test_a_probe_measures_what_nobody_knows(folder):
    result = plan("grid.yaml", "--probe", "--all", "--set", "seeds=1")
    assert result.stdout.count(" a probe\n") == 2
    assert "measured 2 of 2 cells" in result.stderr and "2 runs to train; time: " in result.stdout


def test_what_a_budget_leaves_out_is_told_and_the_command_has_it(folder):
    unknown = plan("grid.yaml", "--budget", "6h")
    note = "note: no run has finished yet, so it is unknown what the budget of 6h leaves out\n"
    assert unknown.stderr.startswith(note) and unknown.stderr.endswith("next: kdx sweep grid.yaml --budget 6h\n")
    assert json.loads(plan("grid.yaml", "--json").stdout)["budget"] is None
    shown = json.loads(plan("grid.yaml", "--json", "--budget", "6h").stdout)["budget"]
    assert shown == {"left_out": None, "seconds": None}

    record("complete", 0, "rbf", valid_score=1.0, valid_step=10, test_score=1.0, definitions={}, last_step=10)
    with open_database("runs.db", write=True) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE attempt SET ended = started + 100")
    for workers, left, seconds in ((1, [("exponential", 1), ("rbf", 1)], 100.0), (2, [("rbf", 1)], 100.0)):
        asked = ("--budget", "2m", "--workers", str(workers))
        shown = json.loads(plan("grid.yaml", "--json", *asked).stdout)
        cells = {run["cell"]: run["choices"]["kernel"] for run in shown["runs"]}
        assert [(cells[run["cell"]], run["seed"]) for run in shown["budget"]["left_out"]] == left
        assert shown["budget"]["seconds"] == pytest.approx(seconds)
    told = plan("grid.yaml", "--budget", "2m", "--workers", "1").stderr
    assert "note: the budget of 2m is enough for 1 of 3 runs to do; left out: seed 1 of all cells\n" in told


def test_a_grid_that_tunes_shows_both_stages_and_their_time(tmp_path):
    tuned = plan_of(tmp_path)
    said = plan("grid.yaml", "--workers", "1")
    assert said.stderr.splitlines() == [
        "note: first a search: 2 cells × 10 trials × 1 tuning seed; 20 runs to train, 800 steps at most (sampler "
        "random, pruner none)",
        "note: then 2 winners × 1 seed = 2 runs",
        "note: time of both: unknown, since no similar run has completed",
        "2 cells to search; next: kdx sweep grid.yaml --workers 1",
    ]
    table = "tables=[{name: t, rows: [kernel], baseline: {kernel: rbf}}]"
    by_rule = plan("grid.yaml", "--set", "seeds={min: 2, max: 5, until: decided}", "--set", table).stderr
    assert "note: then 2 winners × 2 to 5 seeds = 4 to 10 runs\n" in by_rule
    with open_database("runs.db", write=True, create=True) as database:
        recording.register(database, tuned)
        begun = Searching(database, tuned)
        trials = begun.advance()
        for run in trials.runs[:2]:
            train(database, run)
    said = plan("grid.yaml", "--workers", "1").stderr
    assert "1 tuning seed, 2 of them ended; 18 runs to train" in said
    assert re.search(r"time: the search .* at most, the winners .*, with 1 run at a time\n", said)
    with open_database("runs.db", write=True) as database:
        found = search(database, tuned, random.Random(0)).with_winners()
        recording.register(database, found)
    assert "2 runs of 2 cells × 1 seed: 2 to start" in plan("grid.yaml").stderr
