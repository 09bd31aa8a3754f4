"""The words that `kdx status` has for workers, and counts of runs that a rule for the seeds does not need."""

import json
from pathlib import Path

import pytest
from looked_after import DB, typed

from kdx.cli.status_of_runs import states_in_words, worker_of
from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunState
from kdx.store.status import WorkRecord
from kdx.sweep.lease_holder import lease_holder

GRID = """
name: tiny
task: translation
data: {corpus: synthetic-translation}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, inner: 16}
training: {steps: 2, batch_tokens: 300, warmup: 1, validate_every: 2}
select: {metric: loss}
seeds: {min: 2, max: %(most)s, until: decided}
axes: {training.learning_rate: [1e-2, 1e-3, 1e-4]}
tables: [{name: t, rows: [training.learning_rate], baseline: {training.learning_rate: 0.01}, cell: mean}]
"""
HERE = lease_holder()
GONE = "/".join([*HERE.split("/")[:3], "999999999", *HERE.split("/")[4:]])


def work(owner: str | None, lease_left: float | None = 30.0, **more: object) -> WorkRecord:
    return WorkRecord(**{**dict.fromkeys(WorkRecord._fields), "owner": owner, "lease_left": lease_left, **more})


def test_of_pending_runs_there_may_be_fewer_where_a_rule_decides():
    counts = {"completed": 1200, "pending": 3}
    assert states_in_words(counts, has_rule=False) == "1,200 completed, 3 pending"
    assert states_in_words(counts, has_rule=True) == "1,200 completed, at most 3 pending"
    assert states_in_words({}, has_rule=True) == "no runs"


@pytest.mark.parametrize(
    ("claim", "alive", "place"),
    [
        (work(HERE), True, " here"),
        (work(GONE), False, " here, which is gone"),
        (work("there/b/n/7/1/x", -1.0), True, " on machine there, whose lease has lapsed"),
        (work(HERE, gpu="0", device="a GPU"), True, " here, on GPU 0 (a GPU)"),
        (work(None), False, "a process of another kdx"),
    ],
)
def test_a_process_is_where_it_works_and_whether_it_may_still_work(claim, alive, place):
    worker = worker_of(claim)
    assert worker.alive == alive and worker.place.endswith(place)


def planned(*scores: float, most: int = 5) -> None:
    """A sweep in which each cell has two seeds, and these mean scores."""
    Path("grid.yaml").write_text(GRID % {"most": most})
    plan = load_grid("grid.yaml")
    with open_database(DB, write=True, create=True) as database:
        sweep_id = recording.register(database, plan, plan.grid)
        by_cell = {cell.id: score for cell, score in zip(plan.cells, scores, strict=False)}
        for run in reading.runs(database, sweep_id):
            if run.seed < 2 and run.cell_id in by_cell:
                attempt = claims.claim(database, run.id, "me", 60)
                score = by_cell[run.cell_id] + run.seed / 1e4
                recording.RunWriter(database, run.id, "me", attempt).complete(score, 10, score, {}, 10)


@pytest.mark.slow
def test_plan_says_the_rule():
    planned()
    said = typed("plan", "grid.yaml")
    assert "3 cells × 2 to 5 seeds a cell, until decided: 6 to start, 9 to wait" in said.stderr
    assert "if the comparison is still open after 2 seeds" in said.stdout
    assert "at most 9 more runs, if comparisons stay open; the time does not include them" in said.stderr
    runs = json.loads(typed("plan", "grid.yaml", "--json").stdout)["runs"]
    assert [run["status"] for run in runs] == ["new"] * 6 + ["open"] * 9


def test_plan_says_what_is_not_needed():
    planned(1.0, 5.0, 9.0)
    runs = json.loads(typed("plan", "grid.yaml", "--json").stdout)["runs"]
    assert {(run["status"], run["reason"]) for run in runs[6:]} == {("not needed", "decided after 2 seeds")}
    assert "at most" not in typed("plan", "grid.yaml").stderr


def test_status_counts_what_is_open_as_at_most_so_many():
    planned(1.0, 1.00003, 9.0)
    said = typed("status").stdout
    # The last one is decided: its three seeds are not counted.
    assert "6 of 12" in said and "at most 6 pending" in said and "6 completed" in said
    (row,) = json.loads(typed("status", "--json").stdout)
    assert row["runs"] == {"pending": 6, "completed": 6}
    runs = typed("status", "tiny")
    assert runs.stdout.count("not needed: decided after 2 seeds") == 3
    assert "at most 6 pending" in runs.stderr and "3 not needed" in runs.stderr and "kdx resume" in runs.stderr


def test_a_decided_sweep_is_not_unfinished():
    planned(1.0, 5.0, 9.0)
    assert "6 of 6" in typed("status").stdout and "pending" not in typed("status").stdout
    assert typed("resume").stderr == "nothing is unfinished; next: kdx report\n"
    report = typed("report", "tiny")
    assert report.stderr == "3 cells: 3 with a score\n" and "n = 2 seeds" in report.stdout
    assert typed("status", "tiny").stderr == "15 runs: 6 completed, 9 not needed\n"


def test_a_sweep_without_a_rule_is_counted_as_it_was():
    planned(1.0, 5.0, 9.0)
    Path("fixed.yaml").write_text("extends: grid.yaml\nname: fixed\nseeds: 3\n")
    plan = load_grid("fixed.yaml")
    with open_database(DB, write=True) as database:
        recording.register(database, plan, plan.grid)
    said = typed("status").stdout
    assert "6 of 9" in said and "at most" not in said


@pytest.mark.slow
def test_a_real_sweep_ends_by_its_rule(terminal):
    """Trained, on the smallest of grids; the rule ends it, whatever is decided."""
    (terminal.folder / "grid.yaml").write_text(GRID % {"most": 3})
    done = terminal.type("kdx sweep grid.yaml --workers 2")
    assert done.returncode == 0 and "2 to 3 seeds a cell, until decided" in done.stderr
    assert {run.seed for run in terminal.runs() if run.state is RunState.COMPLETED} >= {0, 1}
    assert "nothing is unfinished" in terminal.type("kdx resume tiny").stderr
