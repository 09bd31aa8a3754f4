"""Workers are submitted with a copy of the source, all or none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdx.errors import KdxError
from kdx.slurm.job_options import JobOptions
from kdx.slurm.submission import FOLDER, Submission, submissions, submit


def submitted(folder: Path, jobs: int, parts: dict[str, str] | None = None) -> Submission:
    return submit(
        folder,
        "swept",
        JobOptions(),
        jobs,
        lambda parts: ["worker", "swept", "--components", str(parts)],
        os.environ,
        "kdx resume swept --slurm",
        parts or {},
    )


def test_workers_are_one_array_of_jobs_that_is_remembered(tmp_path, played):
    folder = played(sbatch="echo 100")
    done = submitted(tmp_path / "files", 10)
    assert (done.array, done.jobs) == (100, 10)
    assert list(submissions(tmp_path / "files")) == [done]
    assert " --array=0-9 " in (folder / "sbatch.words").read_text()


def test_where_slurm_refuses_nothing_is_left(tmp_path, played):
    played(sbatch="echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1")
    with pytest.raises(KdxError, match="sbatch refuses: sbatch: error: QOSMaxSubmit") as caught:
        submitted(tmp_path / "files", 2)
    assert caught.value.hint is not None and "--jobs" in caught.value.hint
    assert list((tmp_path / "files" / FOLDER).iterdir()) == []
    assert list(submissions(tmp_path / "files")) == []


def test_jobs_use_the_source_and_the_script_as_they_were(tmp_path, played):
    played(sbatch="printenv KDX_JOB_SOURCE > $(dirname $0)/source; echo 7")
    done = submitted(tmp_path / "files", 1, {"deep/my_kernels.py": "class Cauchy: ..."})
    assert (done.folder / "components" / "deep" / "my_kernels.py").read_text() == "class Cauchy: ..."
    where = "import kdx; print(kdx.__file__)"
    found = subprocess.run(
        [sys.executable, "-P", "-c", where],
        env={**os.environ, "PYTHONPATH": str(done.folder / "source")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(found.stdout.strip()).is_relative_to(done.folder)
    assert (tmp_path / "played" / "source").read_text() == f"{done.folder}/source\n"
    assert (done.folder / "source" / "kdx" / "slurm" / "job.sh").exists()
