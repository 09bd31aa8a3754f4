"""What is handed to sbatch, and the script of a job, run by bash with a worker that is played."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from waiting import wait_until

import kdx
from kdx.slurm.job_options import JobOptions
from kdx.slurm.submission import SCRIPT, job_command, job_environment

WORKER = """\
#!/bin/bash
trap 'echo asked >> began; exit 143' TERM
trap 'echo here >> began' USR1
echo "worker $*" >> began
[ "$3" = kdx ] && shift 3
case "$2" in done) exit 0;; failed) exit 4;; esac
while :; do sleep 0.05; done
"""


ROOT = Path(kdx.__file__).parents[1]
HOSTILE = "x$(touch RAN)`touch RAN`';touch RAN;'\"&& touch RAN #*! é"


def started(
    folder: Path,
    before: tuple[str, str] = ("", ""),
    sweep: str = "long",
    environment=None,
    again: str = "kdx resume x --slurm",
    **asked,
) -> subprocess.Popen:
    """A job; before the line of its script that begins as the first text says, the second one is done."""
    worker = folder / "python"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    options = JobOptions(python=str(worker), setup="export MODULE=loaded", **asked)
    text = (ROOT / SCRIPT).read_text()
    line, more = before
    if line:
        assert f"\n{line}" in text
        text = text.replace(f"\n{line}", f"\n{more}\n{line}")
    script = folder / "job.sh"
    script.write_text(text)
    return subprocess.Popen(
        ["bash", str(script), "worker", sweep],
        cwd=folder,
        env={
            **os.environ,
            **job_environment(options, source=folder / "source", again=again),
            "SLURM_JOB_ID": "77",
            **(environment or {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def begun(folder: Path) -> str:
    wait_until(lambda: (folder / "began").exists() and (folder / "began").read_text().endswith("\n"))
    return (folder / "began").read_text()


@pytest.mark.parametrize(("sweep", "code"), [("done", 0), ("failed", 4)])
def test_a_job_ends_as_its_worker_does(tmp_path, played, sweep, code):
    folder = played(scontrol="")
    assert started(tmp_path, sweep=sweep).wait(300) == code
    assert begun(tmp_path).startswith(f"worker -P -m kdx worker {sweep}")
    assert not (folder / "scontrol.words").exists()


def test_before_its_time_limit_a_worker_leaves_and_the_job_is_queued_again(tmp_path, played):
    folder = played(scontrol="")
    job = started(tmp_path)
    begun(tmp_path)
    job.send_signal(signal.SIGUSR2)
    assert job.wait(300) == 0
    assert "asked" in begun(tmp_path)
    assert (folder / "scontrol.words").read_text() == "requeue 77\n"


def test_a_worker_that_ends_as_soon_as_it_is_asked_has_left_all_the_same(tmp_path, played):
    folder = played(scontrol="")
    job = started(tmp_path, ("  kill -0", '  while kill -0 "$worker" 2>/dev/null; do sleep 0.05; done'))
    begun(tmp_path)
    job.send_signal(signal.SIGUSR2)
    assert job.wait(300) == 0
    assert (folder / "scontrol.words").read_text() == "requeue 77\n"


@pytest.mark.parametrize(
    ("line", "first"), [("export PYTHONPATH=", ""), ("worker=$!", "until [ -e began ]; do sleep 0.05; done; ")]
)
def test_a_limit_that_is_near_before_a_worker_is_known_is_heard(tmp_path, played, line, first):
    folder = played(scontrol="")
    job = started(tmp_path, (line, f"{first}kill -USR2 $$; sleep 0.2"))
    assert job.wait(300) == 0
    assert (folder / "scontrol.words").read_text() == "requeue 77\n"
    # One that is asked at once may end before it says so.
    assert not first or begun(tmp_path).count("asked") == 1


def test_the_limit_of_requeues_is_said_and_no_text_of_a_name_is_run(tmp_path, played):
    folder = played(scontrol="")
    again = f"kdx resume {shlex.quote(HOSTILE)} --slurm"
    job = started(tmp_path, sweep=HOSTILE, environment={"SLURM_RESTART_COUNT": "2"}, again=again, requeues=2)
    assert begun(tmp_path) == f"worker -P -m kdx worker {HOSTILE}\n"
    job.send_signal(signal.SIGUSR2)
    said, _ = job.communicate(timeout=300)
    assert job.returncode == 143
    assert f"queued again 2 times, which is the limit; {again} submits new ones" in said
    assert not (folder / "scontrol.words").exists()
    assert not (tmp_path / "RAN").exists()


def test_a_cancelled_job_is_not_queued_again(tmp_path, played):
    """Slurm sends SIGTERM to every process of the job, to the worker too."""
    folder = played(scontrol="")
    job = started(tmp_path, ("  kill -0", "touch woken"))
    begun(tmp_path)

    def is_woken() -> bool:
        job.send_signal(signal.SIGTERM)  # again, since the job may not have waited for its worker yet
        return (tmp_path / "woken").exists()

    wait_until(is_woken)
    subprocess.run(["pkill", "-USR1", "-P", str(job.pid)], check=True)
    wait_until(lambda: "here" in begun(tmp_path))
    assert "asked" not in begun(tmp_path), "the job waits, and asks the worker no second time"
    subprocess.run(["pkill", "-TERM", "-P", str(job.pid)], check=True)
    assert job.wait(300) == 143
    assert not (folder / "scontrol.words").exists()


def test_sbatch_gets_each_name_as_an_argument():
    folder = Path("/files/100% mine/slurm/1")
    command = job_command(
        JobOptions(), sweep=HOSTILE, folder=folder, source=folder / "source", jobs=4, words=["worker", HOSTILE]
    )
    assert command[-3:] == [f"{folder}/source/kdx/slurm/job.sh", "worker", HOSTILE]
    assert "--output=/files/100%% mine/slurm/1/%A_%a.log" in command and f"--chdir={folder}" in command
    assert "--array=0-3" in command


def test_a_setup_that_sources_a_file_hands_it_no_arguments(tmp_path, played):
    played(scontrol="")
    (tmp_path / "setup.sh").write_text('[ $# = 0 ] || touch "got $*"; export MODULE=other')
    job = started(tmp_path, sweep="done", environment={"KDX_JOB_SETUP": "source ./setup.sh"})
    assert job.wait(300) == 0
    assert not list(tmp_path.glob("got*"))
