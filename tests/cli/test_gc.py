"""`kdx gc` says what may go, and removes it when told to."""

import json
import re

import pytest
from looked_after import DB, checkpoints, completed, interrupted, names, planned, refused, typed

from kdx.errors import DatabaseError
from kdx.run_files import files as run_files
from kdx.store import claims
from kdx.store.database import open_database


@pytest.fixture
def runs():
    """The best of a cell, another of its runs with leftovers, and one that is not finished."""
    best, other, stopped = planned(3)
    completed(best, 1.0)
    completed(other, 2.0)
    checkpoints(other).write("step", 10, {})
    interrupted(stopped, 5)
    checkpoints(stopped).write("step", 5, {})
    return best, other, stopped


def lines(text: str) -> list[str]:
    """The lines of a text without sizes, which depend on how torch writes."""
    return [re.sub(r" +", " ", re.sub(r"[\d.]+ (bytes|kB)", "…", line)).strip() for line in text.splitlines()]


def test_it_says_what_may_go_and_removes_nothing(runs):
    before = [names(run) for run in runs]
    done = typed("gc")
    assert done.exit_code == 0
    assert lines(done.stdout) == [
        "files size what removed by",
        "1 … checkpoints of finished runs kdx gc --apply",
        "0 … half-written and damaged files of finished runs",
        "1 … weights of finished runs that no table selects kdx gc --keep selected --apply",
        "1 … weights of the runs that a table selects kdx gc --keep none --apply",
        "0 … all files of runs that no sweep plans",
        "0 … files of runs that are not in this database",
        "0 … scripts, sources and logs of Slurm jobs that have ended",
    ]
    assert lines(done.stderr) == ["nothing was removed; 1 file, … would be by: kdx gc --apply"]
    assert [names(run) for run in runs] == before


def test_by_default_only_what_nobody_needs_goes(runs):
    best, other, stopped = runs
    done = typed("gc", "--apply")
    assert lines(done.stdout)[1] == "1 … checkpoints of finished runs removed"
    assert lines(done.stderr) == ["removed 1 file, …"]
    assert (names(best), names(other), names(stopped)) == (["best.ckpt"], ["best.ckpt"], ["step.ckpt"])
    assert typed("gc", "--apply").stderr == "removed 0 files, 0 bytes\n"
    assert typed("gc").stderr == "nothing was removed, and by these rules nothing would be\n"


def test_of_the_weights_those_can_be_kept_that_a_table_shows(runs):
    best, other, stopped = runs
    assert lines(typed("gc", "--keep", "selected").stderr) == [
        "nothing was removed; 2 files, … would be by: kdx gc --keep selected --apply"
    ]
    typed("gc", "--keep", "selected", "--apply")
    assert (names(best), names(other)) == (["best.ckpt"], ["weights-removed.txt.txt"])
    typed("gc", "--keep", "none", "--apply")
    assert (names(best), names(stopped)) == (["weights-removed.txt.txt"], ["step.ckpt"])
    assert typed("doctor").exit_code == 0


def test_each_sweep_selects_for_itself(runs):
    """A sweep of fewer seeds may show a run that the larger one passes over."""
    best, other, _ = runs
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql("INSERT INTO sweep SELECT 9, 'second', created, updated, grid FROM sweep")
        connection.exec_driver_sql("INSERT INTO sweep_cell SELECT 9, cell_id, ordinal, labels, planned FROM sweep_cell")
        connection.exec_driver_sql(f"INSERT INTO sweep_run VALUES (9, '{other.cell_id}', {other.seed}, 1)")
    typed("gc", "--keep", "selected", "--apply")
    assert (names(best), names(other)) == (["best.ckpt"], ["best.ckpt"])


def test_what_no_sweep_plans_and_what_is_not_known_go_when_asked_for(runs):
    best, other, stopped = runs
    planned(1)
    stranger = run_files.files_beside(DB) / ("f" * 32 + "-0-0")
    stranger.mkdir()
    (stranger / "log.txt").touch()
    typed("gc", "--apply")
    assert names(other) == ["best.ckpt", "step.ckpt"]
    typed("gc", "--apply", "--unplanned", "--unknown")
    assert (names(best), names(other), names(stopped)) == (["best.ckpt"], ["weights-removed.txt.txt"], [])
    assert not stranger.exists()


def test_while_it_removes_nobody_can_claim_a_run(runs, monkeypatch):
    _, _, stopped = runs
    tried = []

    def claim() -> int | None:
        with open_database(DB, write=True) as database:
            database.patience = 0.0
            return claims.claim(database, stopped.id, "other", 60.0)

    def remove(*arguments, **options):
        with pytest.raises(DatabaseError, match="locked"):
            claim()
        tried.append("refused")

    monkeypatch.setattr("kdx.store.database.BUSY_SECONDS", 0.0)
    monkeypatch.setattr("kdx.cli.gc.remove", remove)
    typed("gc", "--apply")
    assert tried == ["refused"] and claim() == 2


def test_programs_get_json(runs):
    rows = json.loads(typed("gc", "--json", "--keep", "selected").stdout)
    assert [(row["rule"], len(row["files"]), row["chosen"], row["removed"]) for row in rows] == [
        ("checkpoints", 1, True, False),
        ("leftovers", 0, True, False),
        ("not_selected", 1, True, False),
        ("selected", 1, False, False),
        ("unplanned", 0, False, False),
        ("unknown", 0, False, False),
        ("submissions", 0, True, False),
    ]
    assert all(row["bytes"] > 0 for row in rows if row["files"])


def test_wrong_words_and_absent_databases_are_refused(runs):
    assert refused("gc", "--keep", "some").exit_code == 2
    assert refused("gc", "--db", "absent.db").exit_code == 3
