"""`--slurm` submits workers of a sweep; Slurm's programs are played here, `tests/slurm` has a real one."""

import json
from pathlib import Path

import pytest
from looked_after import DB, completed, planned, typed

from kdx.run_files.files import files_beside

pytestmark = pytest.mark.usefixtures("data_home")


@pytest.fixture
def slurm(played) -> Path:
    """A Slurm that takes all jobs and keeps the environment that they get."""
    return played(sbatch="env > $(dirname $0)/environment; echo 11")


def test_as_many_workers_are_submitted_as_there_are_runs(slurm):
    planned(3)
    said = typed("resume", "tiny", "--slurm", "--time", "10", "--sbatch=--mem=1G").stderr
    assert "submitted 3 jobs (11) for 3 runs of tiny; logs in " in said
    command = (slurm / "sbatch.words").read_text()
    assert " --array=0-2 " in command and " --time=10 " in command and " --mem=1G " in command
    assert command.endswith("/kdx/slurm/job.sh worker --if-changed refuse --hang-after 600 -- tiny\n")
    note = json.loads(next((files_beside(DB) / "slurm").glob("*/submission.json")).read_text())
    assert (note["array"], note["jobs"]) == (11, 3)


def test_the_address_of_the_database_is_in_the_environment_alone(slurm, tmp_path):
    planned(1)
    typed("resume", "tiny", "--slurm", "--db", "sqlite:///runs.db", "--jobs", "4")
    assert f"KDX_DB=sqlite:///{tmp_path}/runs.db\n" in (slurm / "environment").read_text()
    assert "runs.db" not in (slurm / "sbatch.words").read_text()


def test_nothing_is_submitted_where_nothing_is_left(slurm):
    (run,) = planned(1)
    completed(run)
    assert "nothing is left to do" in typed("sweep", "grid.yaml", "--slurm").stderr
    assert not (slurm / "environment").exists()
