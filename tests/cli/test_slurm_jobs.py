"""What commands show of jobs in Slurm, whose programs are played here; `tests/slurm` has a real one."""

import json
from pathlib import Path

import pytest
from looked_after import DB, planned, refused, states, typed
from typer.testing import CliRunner

from kdx.cli.app import app
from kdx.errors import KdxError
from kdx.run_files.files import files_beside


@pytest.fixture
def jobs(played) -> Path:
    """A sweep with an array of two jobs, of which one is at work; its folder."""
    planned()
    there = files_beside(DB).absolute() / "slurm" / "1"
    # Of two with one number the other is not ours.
    other = "echo '7|1|9|RUNNING|n2|None|/elsewhere'"
    played(squeue=f"echo '7|0|8|RUNNING|n1|None|{there}'; {other}", scancel="true")
    note = {"sweep": "tiny", "array": 7, "jobs": 2, "submitted": 1.0}
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
    assert "Slurm does not answer here, so the state of its jobs is unknown" in said.stderr
    assert typed("cancel", "tiny").exit_code == 0


def test_a_sweep_is_cancelled_with_its_jobs_and_a_part_of_it_without(jobs, played, tmp_path):
    words = tmp_path / "played" / "scancel.words"
    assert typed("cancel", "tiny", "seed=0").exit_code == 0 and not words.exists()
    assert "took 1 job out of Slurm's queue" in typed("cancel", "tiny").stderr
    assert words.read_text() == "7\n"


def test_where_slurm_cancels_no_job_it_is_said_what_is_cancelled_and_what_is_not(jobs, played):
    there = jobs.resolve()
    played(squeue=f"echo '7|0|8|RUNNING|n1|None|{there}'", scancel="echo 'Access denied' >&2; exit 1")
    done = CliRunner().invoke(app, ["cancel", "tiny", "--json"])
    error = done.exception
    assert isinstance(error, KdxError) and error.exit_code == 2
    assert error.problem == "1 job still in Slurm's queue: scancel refuses: Access denied"
    assert error.hint == "try it by hand: scancel 7"
    assert json.loads(done.stdout) | {"cancelled": 0} == {
        "cancelled": 0,
        "running": [],
        "planned_too": {},
        "jobs": 0,
        "jobs_left": ["8"],
    }
    assert "cancelled 3 runs" in done.stderr
    assert set(states()) == {"cancelled"}


def test_a_sweep_with_jobs_is_not_removed(jobs, played):
    error = refused("rm", "tiny", "--yes")
    assert error.problem == "sweep `tiny` has 1 job in Slurm's queue" and "kdx cancel tiny" in str(error.hint)
    played(squeue="true")
    assert typed("rm", "tiny", "--yes").exit_code == 0


def test_gc_removes_what_was_submitted_once_the_jobs_are_gone_and_the_sweep_is_done(jobs, played):
    (jobs / "source" / "kdx").mkdir(parents=True)
    (jobs / "source" / "kdx" / "a.py").write_text("1")
    (jobs / "7_0.log").write_text("works on tiny")
    other = jobs.with_name("2")  # being submitted
    other.mkdir()

    def listed() -> list[str]:
        (found,) = (rule for rule in json.loads(typed("gc", "--json").stdout) if rule["rule"] == "submissions")
        assert found["chosen"] and not found["removed"]
        return found["files"]

    assert listed() == []  # a job is in the queue
    played(squeue="true")
    assert listed() == []  # runs are left to do
    typed("cancel", "tiny")
    played(squeue="exit 1")
    assert listed() == []  # nobody knows
    played(squeue="true")
    assert listed() == ["slurm/1/source/kdx/a.py", "slurm/1/7_0.log", "slurm/1/submission.json"]
    assert "3" in typed("gc", "--apply").stdout
    assert not jobs.exists() and other.is_dir()


def test_the_log_of_a_job_is_found_by_its_number(jobs):
    assert "has no log yet" in refused("logs", "7_1").problem
    (jobs / "7_0.log").write_text("works on tiny\n\x1b[2J")
    assert typed("logs", "7_0").stdout == "works on tiny\n\\x1b[2J"
    assert refused("logs", "-f", "7_0").problem == "-f follows a run, not a job"
    for other in ("8_0", "../7_0"):
        assert "no job" in refused("logs", other).problem


def test_a_database_without_jobs_asks_no_slurm(played, tmp_path):
    planned()
    played(squeue="true")
    typed("status")
    assert not (tmp_path / "played" / "squeue.words").exists()
