"""Workers are submitted with a copy of the source, in chunks, and never half."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdx.errors import KdxError
from kdx.slurm.job_options import JobOptions
from kdx.slurm.submission import FOLDER, Submission, submissions, submit

SETTINGS = "echo 'MaxArraySize            = 4'"
COUNTS = "n=$(cat {0}/n 2>/dev/null || echo 0); echo $((n+1)) > {0}/n; echo $((n+100))"


def submitted(folder: Path, jobs: int, parts: dict[str, str] | None = None) -> tuple[Submission, str | None]:
    return submit(
        folder,
        (3, "swept"),
        JobOptions(),
        jobs,
        lambda parts: ["worker", "swept", "--components", str(parts)],
        os.environ,
        "kdx resume swept --slurm",
        parts or {},
    )


def test_more_jobs_than_an_array_takes_are_several_arrays(tmp_path, played):
    folder = played(scontrol=SETTINGS)
    played(sbatch=COUNTS.format(folder))
    done, lacking = submitted(tmp_path / "files", 10)
    assert (done.arrays, done.jobs, lacking) == ((100, 101, 102), 10, None)
    assert list(submissions(tmp_path / "files")) == [done]
    assert (folder / "sbatch.words").read_text().splitlines()[-1].count("--array=0-1 ") == 1, "the last of them"


def test_a_limit_on_jobs_makes_smaller_arrays_and_then_fewer_workers(tmp_path, played):
    folder = played(scontrol=SETTINGS.replace("4", "1000"))
    limit = "sbatch: error: QOSMaxSubmitJobPerUserLimit"
    # Six jobs at most.
    played(
        sbatch=f"""size=$(sed 's/.*--array=0-\\([0-9]*\\).*/\\1/' <<< "$*"); size=$((size+1))
had=$(cat {folder}/had 2>/dev/null || echo 0)
if [ $((had+size)) -gt 6 ]; then echo "{limit}" >&2; exit 1; fi
echo $((had+size)) > {folder}/had; echo $((100+had))"""
    )
    done, lacking = submitted(tmp_path / "files", 10)
    assert done.jobs == 6 and lacking is not None
    assert lacking.startswith("6 of 10 jobs are submitted, and do all the work") and "MaxSubmit" in lacking


def test_where_slurm_refuses_the_first_nothing_is_left(tmp_path, played):
    played(scontrol=SETTINGS, sbatch="echo no >&2; exit 1")
    with pytest.raises(KdxError, match="sbatch refuses: no"):
        submitted(tmp_path / "files", 2)
    assert list((tmp_path / "files" / FOLDER).iterdir()) == []
    assert list(submissions(tmp_path / "files")) == []


def test_jobs_use_the_source_and_the_script_as_they_were(tmp_path, played):
    played(scontrol=SETTINGS, sbatch="printenv KDX_JOB_SOURCE > $(dirname $0)/source; echo 7")
    done, _ = submitted(tmp_path / "files", 1, {"deep/my_kernels.py": "class Cauchy: ..."})
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


@pytest.mark.parametrize(
    "note",
    [
        "",
        "{}",
        "[]",
        '{"sweep": "x"}',
        '{"sweep": 1, "arrays": 3}',
        pytest.param("[" * 200_000, id="deep"),
        '{"sweep": 1, "arrays": [1e999], "jobs": 1, "made": 1}',
    ],
)
def test_a_note_of_somebody_else_is_passed_over(tmp_path, note):
    folder = tmp_path / FOLDER / "1"
    folder.mkdir(parents=True)
    (folder / "submission.json").write_text(note)
    assert list(submissions(tmp_path)) == []
