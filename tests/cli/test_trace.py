"""`kdx trace` on a real database."""

import json
from pathlib import Path

import pytest
from looked_after import DB, claimed, completed, planned, refused, typed

from kdx.grid.load import load_grid
from kdx.store import claims, recording
from kdx.store.database import open_database


@pytest.fixture
def runs():
    made = planned(3)
    for run, score in zip(made[:2], (2.5, 2.25), strict=True):
        completed(run, score)
    return made


@pytest.mark.parametrize(
    ("environment", "commit"),
    [
        ({"commit": "c" * 40}, f"{'c' * 40} (clean)"),
        ({"commit": f"{'c' * 40}-dirty"}, f"{'c' * 40} with changes that were not committed"),
        ({"kdx": "0.1.0"}, "not recorded: kdx 0.1.0 was installed, not run from a clone"),
    ],
)
def test_a_number_is_told_in_five_lines(environment, commit):
    _, second = planned(2)
    claimed(second)
    with open_database(DB, write=True) as database:
        writer = recording.RunWriter(database, second.id, "me", 1)
        writer.begin(environment, "data", "code", 0, None, {})
        writer.complete(2.25, 10, 2.25, {}, 10)
    done = typed("trace", "tiny", "translation")
    assert done.stdout.splitlines() == [
        "  value       2.250: test/loss of tiny, translation, loss ↓",
        f"  of          run {second.id}, seed 1: the best valid/loss of 2 seeds",
        f"  commit      {commit}",
        "  planned by  a command that was not recorded",
    ]
    assert done.stderr == "all settings, data and attempts with: kdx trace tiny translation --sweep tiny --full\n"


def test_a_score_without_a_limit_is_traced():
    (run,) = planned(1)
    claimed(run)
    with open_database(DB, write=True) as database:
        recording.RunWriter(database, run.id, "me", 1).complete(2.25, 10, float("inf"), {}, 10)
    assert typed("trace", "tiny", "translation").stdout.startswith("  value       ∞: test/loss of tiny")


def test_a_grid_file_stays_what_is_traced(runs):
    text = Path("grid.yaml").read_text()
    Path("grid.yaml").write_text(f"{text}\ntables: [{{name: mine, rows: task}}]\n")
    done = typed("trace", "mine", "translation", "--sweep", "grid.yaml")
    assert done.stderr.endswith("kdx trace mine translation --sweep grid.yaml --full\n")
    assert typed("report", "grid.yaml", "--format", "markdown").stdout.startswith(
        "<!-- kdx report grid.yaml --table mine -->"
    )


def test_a_number_is_told_with_its_runs_and_how_to_compute_it_again(runs):
    done = typed("trace", "tiny", "translation", "--full")
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "tiny: translation, loss ↓",
        "  2.250: test/loss of run 2, seed 1: the best valid/loss of 3 seeds",
    ]
    assert f"cell      {runs[0].cell_id}" in lines
    assert {"  kernel: exponential", "  norm: post"} <= set(lines)
    assert ["*", "2", "1", "completed", "2.25", "10", "2.25"] in [line.split()[:7] for line in lines]
    assert done.stderr == (
        "compute this cell again with: kdx trace tiny translation 'loss ↓' --sweep tiny --grid > again.yaml"
        " && kdx sweep again.yaml --db again.db\n"
    )


def test_a_grid_is_printed_by_itself(runs):
    assert refused("trace", "tiny", "translation", "--grid", "--json").hint == "--json has the grid too"


def test_its_grid_makes_the_same_cell_with_the_same_seeds(runs, folder):
    (folder / "again.yaml").write_text(typed("trace", "tiny", "translation", "--grid").stdout)
    plan = load_grid("again.yaml")
    assert [(cell.id, plan.seeds) for cell in plan.cells] == [(runs[0].cell_id, (0, 1, 2))]


@pytest.mark.slow
def test_json_has_all_of_it(runs):
    shown = json.loads(typed("trace", "tiny", "translation", "loss", "--json").stdout)
    assert (shown["value"], shown["run"]) == (2.25, 2)
    assert [run["state"] for run in shown["runs"]] == ["completed", "completed", "pending"]
    assert shown["command"] is None


def test_what_is_not_there_is_refused_and_nothing_is_written(runs, folder):
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert str(refused("trace", "tinny", "translation")) == (
        "sweep `tiny` has no table `tinny`\n  allowed: tiny\n  hint: did you mean `tiny`?"
    )
    planned(1, name="newer")
    assert refused("trace", "tiny", "translation", "--sweep", "newer").hint == "sweep `tiny` has it: --sweep tiny"
    assert refused("trace", "tinny", "translation", "--sweep", "tiny").hint == "did you mean `tiny`?"
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert (
        refused("trace", "tiny", "prediction", "--sweep", "tiny").problem
        == "table `tiny`: there is no row `prediction`"
    )
    assert refused("trace", "tiny", "translation", "--sweep", "other").problem == "there is no sweep `other`"
    assert refused("trace", "tiny", "translation", "--db", "absent.db").exit_code == 3
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_the_only_sweep_with_a_table_is_meant_whatever_was_swept_since(runs):
    planned(1, name="newer")
    assert "2.250: test/loss of tiny" in typed("trace", "tiny", "translation").stdout


def test_each_attempt_is_told_from_where_it_really_began():
    (run,) = planned(1)
    resumed = [None, 0, 380]
    with open_database(DB, write=True) as database:
        for number, (step, last) in enumerate(zip(resumed, (388, 400, 1500), strict=True), 1):
            assert claims.claim(database, run.id, "me", 60.0) == number
            hand = recording.RunWriter(database, run.id, "me", number)
            if step is not None:
                hand.begin({}, "data", "code", step)
            hand.record([], last)
            hand.interrupt(last)
    lines = [line.split() for line in typed("trace", "tiny", "translation", "--full").stdout.splitlines()]
    assert [line[6] for line in lines if line[:1] == ["1"] and "interrupted" in line[7:]] == [
        "0–388",
        "0–400",
        "380–1,500",
    ]


def test_nothing_that_was_recorded_drives_the_terminal(runs):
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE run SET data_fingerprint = 'd' || char(27) || '[2J', code_fingerprint = 'c' || char(8238)"
        )
    shown = typed("trace", "tiny", "translation", "--full").stdout
    assert "  data  d\\x1b[2J" in shown and "  code  c\\u202e" in shown
    assert not set(shown) & {"\x1b", "\u202e"}


def test_a_number_of_several_sweeps_names_those_that_plan_its_cell(runs, folder):
    planned(2, name="newer")
    done = typed("trace", "newer, tiny", "translation", "--sweep", "newer", "--sweep", "tiny", "--full")
    lines = done.stdout.splitlines()
    assert lines[3:7] == [
        "sweep     newer, in runs.db",
        "planned   by a command that was not recorded",
        "sweep     tiny, in runs.db",
        "planned   by a command that was not recorded",
    ]
    assert "trace 'newer, tiny' translation 'loss ↓' --sweep newer --sweep tiny --grid" in done.stderr
    (folder / "days.yaml").write_text("tables:\n- {name: days, rows: kernel, columns: sweep}\n")
    asked = ("days", "exponential", "newer", "--sweep", "tiny", "--sweep", "newer", "--tables", "days.yaml")
    shown = json.loads(typed("trace", *asked, "--json").stdout)
    assert [run["seed"] for run in shown["runs"]] == [0, 1, 2]
    assert (shown["sweep"], shown["cell"]) == ("tiny, newer", runs[0].cell_id)
    assert shown["sweeps"] == [{"sweep": name, "command": None} for name in ("tiny", "newer")]
    assert "--sweep tiny --sweep newer --tables days.yaml --full" in typed("trace", *asked).stderr
