"""`kdx rm` removes a sweep; its results only where that is said, and agreed to."""

import re

import pytest
from looked_after import DB, checkpoints, claimed, completed, names, planned, refused, typed
from typer.testing import CliRunner

from kdx.cli import rm
from kdx.cli.app import app
from kdx.run_files.files import files_beside, folder_of
from kdx.run_files.folder_ownership import NOTE
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.reading import load_sweep
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, train


def inventory():
    with open_database(DB, write=False) as database:
        return [run.id for run in reading.inventory(database).runs], [sweep.name for sweep in reading.sweeps(database)]


def test_results_stay_without_runs():
    first, *_ = planned(3)
    completed(first)
    said = typed("rm", "tiny", "--yes")
    assert (
        "to be removed: sweep `tiny` with 1 plan, 2 runs with 0.0 hours" in said.stderr
        and "; 1 run stays" in said.stderr
    )
    assert inventory() == ([1], [])
    assert names(first) == ["best.ckpt"]


def test_with_runs_all_goes_and_is_announced():
    runs = planned(2)
    for run in runs:
        completed(run)
    said = typed("rm", "tiny", "--runs", "--yes")
    announced, done = said.stderr.splitlines()
    assert re.search(r"2 runs with 0.0 hours of computing, 2 files \(", announced) and done == "removed sweep `tiny`"
    assert inventory() == ([], [])
    assert not [path for path in files_beside(DB).iterdir() if path.is_dir()]


def test_runs_of_another_sweep_stay_with_their_files():
    planned(2, name="one")
    runs = planned(3, name="other")
    for run in runs:
        completed(run)
    typed("rm", "other", "--runs", "--yes")
    assert inventory() == ([1, 2], ["one"])
    assert [names(run) for run in runs] == [["best.ckpt"], ["best.ckpt"], []]


def test_files_of_another_database_are_not_removed():
    (run,) = planned(1)
    checkpoints(run).write("step", 5, {})
    (files_beside(DB) / NOTE).write_text("0" * 32)
    assert "another database" in str(refused("rm", "tiny", "--yes"))
    assert names(run) == ["step.ckpt"]


def test_nobody_there_to_ask_wants_yes():
    planned(1)
    error = refused("rm", "tiny", "--runs")
    assert error.problem == "nothing was removed, since nobody can be asked"
    assert error.hint == "kdx rm tiny --runs --yes"
    assert inventory() == ([1], ["tiny"])


@pytest.mark.parametrize(("answer", "left"), [("n\n", ["tiny"]), ("\n", ["tiny"]), ("y\n", [])])
def test_somebody_at_a_terminal_is_asked(monkeypatch, answer, left):
    planned(1)
    monkeypatch.setattr(rm, "_is_somebody_there", lambda: True)
    assert CliRunner().invoke(app, ["rm", "tiny"], input=answer).exit_code == 0
    assert inventory()[1] == left


def test_a_sweep_at_work_or_unknown_is_refused():
    first, *_ = planned(2)
    claimed(first)
    error = refused("rm", "tiny", "--runs", "--yes")
    assert error.problem == "sweep `tiny` is still computed: run 1" and "kdx cancel tiny" in error.hint
    assert refused("rm", "tinny", "--yes").hint == "did you mean `tiny`?"
    assert inventory() == ([1, 2], ["tiny"])


def test_a_sweep_that_searches_ends_with_its_process(tmp_path):
    tuned = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, tuned)
        first, *_ = Searching(database, tuned).advance().runs
        claims.claim(database, reading.recorded(database, [first.cell.id])[first.key].id, "me", 60)
    ends = "its search continues until its process is ended, which kdx status tuned names"
    assert typed("cancel", "tuned").stderr == f"nothing was cancelled: {ends}\n"
    error = refused("rm", "tuned", "--runs", "--yes")
    assert error.hint == "end the process that searches, which kdx status tuned names"


def test_a_trial_is_removed_with_its_own_files_and_with_no_others(tmp_path):
    """Here another sweep trains the very cell with the tuning seed."""
    tuned = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, tuned)
        for run in Searching(database, tuned).advance().runs:
            train(database, run)
        (search, *_) = load_sweep(database, "tuned").searches
        trial = search.trials[0].runs[0]
    own, other = (folder_of(run) for run in (trial, trial._replace(search_id=None)))
    for folder in (own, other):
        (files_beside(DB) / folder).mkdir(parents=True)
        (files_beside(DB) / folder / "best.ckpt").write_bytes(b"weights")
    typed("rm", "tuned", "--runs", "--yes")
    assert [path.parent.name for path in files_beside(DB).glob("*/best.ckpt")] == [other]


def test_what_a_kill_leaves_of_the_files_is_found_by_gc(monkeypatch, tmp_path):
    (run,) = planned(1)
    completed(run)
    checkpoints(run).write("step", 5, {})

    def killed(*_, **__):
        raise RuntimeError("killed")

    monkeypatch.setattr("kdx.cli.rm.remove", killed)
    with pytest.raises(RuntimeError):
        typed("rm", "tiny", "--runs", "--yes")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert inventory() == ([], [])
    assert "kdx gc --unknown --apply" in typed("gc").stdout
    typed("gc", "--unknown", "--apply")
    assert names(run) == []
