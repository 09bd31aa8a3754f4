"""`kdx status` says how far sweeps are."""

import json
import random
from contextlib import contextmanager
from pathlib import Path

import pytest
from looked_after import DB, claimed, completed, failed, planned, refused, registered, typed

from kdx.cli import console
from kdx.cli.status import states_in_words, worker_of
from kdx.store import claims, reading, recording
from kdx.store.backend import Database
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.store.status import WorkRecord
from kdx.sweep.lease_holder import lease_holder
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train


def test_paused_cells_are_shown_with_what_goes_on():
    first, second, _ = planned(3)
    for run in (first, second):
        failed(run, f"no room for {run.id}")
    why = "2 runs of its cell failed alike: no room for …"
    line = f"cell {first.cell_id[:8]} of tiny is paused: {why}; kdx retry tiny state=failed"
    assert typed("status").stdout.splitlines()[-2:] == ["", line]
    told = typed("status", "tiny")
    shown = told.stdout.splitlines()
    assert shown[-2:] == ["", line] and shown[3].endswith(f"paused: {why}")
    assert told.stderr.endswith(
        f"2 failed, 1 paused; see why with: kdx logs {second.id}; next: kdx retry tiny state=failed\n"
    ), "kdx resume alone would do nothing"
    (found,) = json.loads(typed("status", "--json").stdout)
    assert found["paused"] == [{"cell": first.cell_id, "runs": 2, "failed": "no room for …"}]
    found = json.loads(typed("status", "tiny", "--json").stdout)
    assert [run["waits_for"] for run in found["runs"]] == [None, None, f"paused: {why}"]
    assert found["paused"]


def test_a_search_is_counted_in_trials(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, plan)
        trials = Searching(database, plan).advance()
        train(database, trials.runs[0])
        claimed_run = reading.recorded(database, [trials.runs[1].cell.id])[trials.runs[1].key]
        Searching(database, plan).advance()
    claimed(claimed_run)
    said = typed("status").stdout
    assert "search: 1 of 20 trials; then the winners" in said and "for the search" in said
    assert said.splitlines()[-1].split()[:2] == ["tuned", str(claimed_run.id)]
    (found,) = json.loads(typed("status", "--json").stdout)
    assert [search["ended"] for search in found["searches"]] == [{"completed": 1}, {}]
    said = typed("status", "tuned")
    assert "exponential  1 of 10  1 completed" in said.stdout and said.stderr.startswith("search: 1 of 20 trials; ")
    assert said.stderr.endswith("next: kdx resume tuned\n")


@pytest.mark.slow
def test_a_search_that_is_done_says_so_no_more(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        found = search(database, plan, random.Random(0)).with_winners()
        recording.register(database, found)
    assert "search" not in typed("status").stdout
    said = typed("status", "tuned")
    assert "exponential  10 of 10" in said.stdout and "search" not in said.stderr


def test_sweeps_are_counted_with_who_works_at_them():
    first, second, _ = planned(3)
    completed(first)
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE attempt SET ended = started + 100")
    claimed(second, owner=lease_holder())
    said = typed("status")
    head, row, _, work_head, work = said.stdout.splitlines()
    assert head.split() == ["sweep", "done", "states", "time", "left"]
    assert row.split()[:4] == ["tiny", "1", "of", "3"] and row.endswith("about 3 min")
    assert work_head.split() == ["sweep", "run", "step", "for", "worker"]
    assert work.split()[:2] == ["tiny", str(second.id)] and work.endswith(" here")
    (found,) = json.loads(typed("status", "--json").stdout)
    assert found["runs"] == {"pending": 1, "running": 1, "completed": 1}
    assert found["working"][0]["run"] == second.id and found["seconds_left"] >= 0


def test_a_worker_that_is_gone_is_told_and_does_not_count():
    first, second, _ = planned(3)
    completed(first)
    machine, boot, namespace, _, start, rest = lease_holder().split("/")
    claimed(second, owner="/".join((machine, boot, namespace, "999999999", start, rest)))
    said = typed("status").stdout
    assert "which is gone" in said and "once a worker continues it" in said
    typed("cancel", "tiny", "seed=2")
    assert typed("status", "tiny").stderr.endswith("1 cancelled; next: kdx resume tiny\n")


@pytest.mark.parametrize(
    "words",
    [
        *(("status", *more) for more in ((), ("tiny",), ("--json",), ("tiny", "--json"))),
        *(("show", *more) for more in ((), ("1",), ("--plans",), ("--json",))),
        *((word, "--json") for word in ("report", "claims")),
        *(("report", "--format", form) for form in ("text", "html", "csv")),
        ("trace", "tiny", "translation"),
    ],
    ids=" ".join,
)
def test_nothing_is_written_while_the_database_is_held(monkeypatch, words):
    """A pager that nobody ends would keep a sweep from writing."""
    for run in planned(2):
        completed(run)
    held = []

    @contextmanager
    def read(database):
        with whole_read(database) as connection:
            held.append(database)
            yield connection
            held.pop()

    def written(stream):
        assert not held
        return to_stdout(stream)

    whole_read, to_stdout = Database.read, console._read_or_not
    monkeypatch.setattr(Database, "read", read)
    monkeypatch.setattr(console, "_read_or_not", written)
    assert typed(*words).exit_code == 0


def test_nothing_recorded_is_said():
    with open_database(DB, write=True, create=True):
        pass
    assert "no sweep is recorded here yet" in typed("status").stderr


def test_a_paused_search_is_shown_with_what_goes_on(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, plan)
        trials = Searching(database, plan).advance()
        first, second = trials.runs[0], trials.runs[2]
        assert first.search_id == second.search_id
        for run in (first, second):
            record = reading.recorded(database, [run.cell.id])[run.key]
            claim = claims.claim(database, record.id, "me", 60)
            RunWriter(database, record.id, "me", claim).fail(f"no room for {record.id}", "", 0)
    line = (
        "search of exponential of tuned is paused: 2 runs of its search failed alike: no room for …; kdx resume tuned"
    )
    assert line in typed("status").stdout.splitlines()
    (found,) = json.loads(typed("status", "--json").stdout)
    assert [search["choices"] for search in found["paused_searches"]] == [{"kernel": "exponential"}]


def test_a_sweep_is_shown_run_by_run_and_chosen_by_words():
    first, second, third = planned(3)
    completed(first, score=2.5)
    failed(second, "no room")
    lines = typed("status", "tiny").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["run", str(first.id), str(second.id), str(third.id)]
    assert lines[0].endswith("  test/loss") and "completed" in lines[1] and "2.500" in lines[1].split()
    assert "failed" in lines[2] and lines[2].endswith("no room")
    chosen = json.loads(typed("status", "tiny", "state=failed", "seed=1", "--json").stdout)
    assert [run["run"] for run in chosen["runs"]] == [second.id]
    assert typed("status", "tiny", "state=failed").stderr.endswith(
        f"1 failed; see why with: kdx logs {second.id}; next: kdx retry tiny state=failed\n"
    )


def test_scores_of_two_metrics_stand_in_two_columns():
    example = str(Path(__file__).parents[2] / "runs.db.example")
    lines = typed("status", "tsai2019/table1-mini", "seed=0", "--db", example).stdout.splitlines()
    head, translation, prediction = lines[0], lines[1], lines[5]
    assert head.split()[-2:] == ["test/bleu", "test/perplexity"]
    assert "translation" in translation and len(translation) == head.index("test/bleu") + len("test/bleu")
    assert "prediction" in prediction and len(prediction) == len(head)


def test_what_chooses_nothing_is_refused_with_what_was_meant():
    planned(2)
    assert refused("status", "tinny").hint == "did you mean `tiny`?"
    assert refused("status", "tiny", "stat=failed").problem == "unknown key `stat` in `stat=failed`"
    error = refused("status", "tiny", "state=pendin")
    assert error.problem == "`pendin` is not a state" and error.hint == "did you mean `pending`?"
    assert refused("status", "tiny", "state=invalidated").problem == "no run has state=invalidated"
    assert refused("status", "tiny", "failed").problem == "`failed` chooses nothing"


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


def scored(*scores: float, most: int = 5) -> None:
    """A sweep in which each cell has two seeds, and these mean scores."""
    runs = registered(GRID % {"most": most})
    by_cell = dict(zip(dict.fromkeys(run.cell_id for run in runs), scores, strict=False))
    for run in runs:
        if run.seed < 2 and run.cell_id in by_cell:
            completed(run, by_cell[run.cell_id] + run.seed / 1e4)


@pytest.mark.slow
def test_plan_says_the_rule():
    scored()
    said = typed("plan", "grid.yaml")
    assert "3 cells × 2 to 5 seeds a cell, until decided: 6 to start, 9 to wait" in said.stderr
    assert "if the comparison is still open after 2 seeds" in said.stdout
    assert "at most 9 more runs, if comparisons stay open; the time does not include them" in said.stderr
    runs = json.loads(typed("plan", "grid.yaml", "--json").stdout)["runs"]
    assert [run["status"] for run in runs] == ["new"] * 6 + ["open"] * 9


def test_plan_says_what_is_not_needed():
    scored(1.0, 5.0, 9.0)
    runs = json.loads(typed("plan", "grid.yaml", "--json").stdout)["runs"]
    assert {(run["status"], run["reason"]) for run in runs[6:]} == {("not needed", "decided after 2 seeds")}
    assert "at most" not in typed("plan", "grid.yaml").stderr


def test_status_counts_what_is_open_as_at_most_so_many():
    scored(1.0, 1.00003, 9.0)
    said = typed("status").stdout
    # The last one is decided: its three seeds are not counted.
    assert "6 of 12" in said and "at most 6 pending" in said and "6 completed" in said
    (row,) = json.loads(typed("status", "--json").stdout)
    assert row["runs"] == {"pending": 6, "completed": 6}
    runs = typed("status", "tiny")
    assert runs.stdout.count("not needed: decided after 2 seeds") == 3
    assert "at most 6 pending" in runs.stderr and "3 not needed" in runs.stderr and "kdx resume" in runs.stderr


def test_a_decided_sweep_is_not_unfinished():
    scored(1.0, 5.0, 9.0)
    assert "6 of 6" in typed("status").stdout and "pending" not in typed("status").stdout
    assert typed("resume").stderr == "nothing is unfinished; next: kdx report\n"
    report = typed("report", "tiny")
    assert report.stderr == "3 cells: 3 with a score\n" and "n = 2 seeds" in report.stdout
    assert typed("status", "tiny").stderr == "15 runs: 6 completed, 9 not needed\n"


def test_a_sweep_without_a_rule_is_counted_as_it_was():
    scored(1.0, 5.0, 9.0)
    registered("extends: grid.yaml\nname: fixed\nseeds: 3\n", "fixed.yaml")
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
