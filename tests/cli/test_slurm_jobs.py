"""What commands show of jobs in Slurm, whose programs are played here; `tests/slurm` has a real one."""

import json
from pathlib import Path

import pytest
from looked_after import DB, planned, refused, typed

from kdx.run_files.files import files_beside
from kdx.store.database import open_database
from kdx.store.find import sweep_named


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def jobs(played) -> Path:
    """A sweep with an array of two jobs, of which one is at work; its folder."""
    planned()
    there = files_beside(DB).absolute() / "slurm" / "1"
    # Of two with one number the other is not ours.
    other = "echo '7|1|9|RUNNING|n2|None|/elsewhere'"
    played(squeue=f"echo '7|0|8|RUNNING|n1|None|{there}'; {other}", scancel="true")
    with open_database(DB, write=False) as database:
        note = {"sweep": sweep_named(database, "tiny"), "arrays": [7], "jobs": 2, "made": 1.0}
    folder = files_beside(DB) / "slurm" / "1"
    folder.mkdir(parents=True)
    (folder / "submission.json").write_text(json.dumps(note))
    return folder


def test_status_has_the_jobs_and_slurms_words(jobs):
    assert "tiny   7          2     1 RUNNING, 1 left the queue" in typed("status").stdout
    assert typed("status", "tiny").stdout.splitlines()[-1].split() == ["7_0", "RUNNING", "n1"]
    (found,) = json.loads(typed("status", "--json").stdout)
    assert found["slurm"][0]["queued"][0]["state"] == "RUNNING"


def test_where_slurm_gives_no_answer_nothing_is_said_of_its_jobs(jobs, played):
    played(squeue="exit 1")
    assert "2 unknown" in typed("status").stdout
    said = typed("status", "tiny")
    assert "Slurm does not answer here, so nothing is known of its jobs" in said.stderr
    assert typed("cancel", "tiny").exit_code == 0


def test_a_sweep_is_cancelled_with_its_jobs_and_a_part_of_it_without(jobs, played, tmp_path):
    words = tmp_path / "played" / "scancel.words"
    assert typed("cancel", "tiny", "seed=0").exit_code == 0 and not words.exists()
    assert "took 1 job out of Slurm's queue" in typed("cancel", "tiny").stderr
    assert words.read_text() == "7\n"


def test_the_log_of_a_job_is_found_by_its_number(jobs):
    assert "has no log yet" in refused("logs", "--job", "7_1").problem
    (jobs / "7_0.log").write_text("works at tiny\n\x1b[2J")
    assert typed("logs", "--job", "7_0").stdout == "works at tiny\n\\x1b[2J"
    for other in ("8_0", "7", "../7_0", ""):
        assert "no job" in refused("logs", "--job", other).problem
    assert refused("logs").problem == "whose log?"


def test_a_database_without_jobs_asks_no_slurm(played, tmp_path):
    planned()
    played(squeue="true")
    typed("status")
    assert not (tmp_path / "played" / "squeue.words").exists()
