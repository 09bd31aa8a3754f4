"""Sweeps on a real Slurm of two nodes, one of which dies. All that asks it is here, since a machine has one Slurm."""

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kdx.slurm import cluster as slurm

MODULES = Path("/usr/share/modules/init/bash")
"""Of Debian's environment-modules."""

GRID = """\
name: swept
task: answer
data: {corpus: copy, length: 4}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 32}
training: {steps: STEPS, batch_tokens: 256, warmup: 5, learning_rate: 1e-2}
axes: {kernel: [exponential, rbf, linear, polynomial]}
seeds: SEEDS
"""


def kdx(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "kdx", *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def written(folder: Path, steps: int, seeds: int) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "grid.yaml").write_text(GRID.replace("STEPS", str(steps)).replace("SEEDS", str(seeds)))
    return folder


def asked(folder: Path, statement: str) -> list[tuple]:
    with closing(sqlite3.connect(folder / "runs.db", timeout=300)) as connection:
        return connection.execute(statement).fetchall()


def states(folder: Path) -> dict[str, int]:
    return dict(asked(folder, "SELECT state, count(*) FROM run GROUP BY state"))


def numbers(folder: Path) -> list[tuple]:
    return asked(
        folder, "SELECT cell_id, seed, name, step, bits FROM metric JOIN run ON run.id = run_id ORDER BY 1, 2, 3, 4"
    )


def logs(folder: Path) -> str:
    return "\n".join(file.read_text() for file in folder.glob("runs.files/slurm/*/*.log"))


GIVE_UP = 1200.0  # seconds


def until(true: Callable[[], bool], folder: Path) -> None:
    end = time.monotonic() + GIVE_UP
    while not true():
        if time.monotonic() > end:
            queue = subprocess.run(["squeue"], capture_output=True, text=True, check=False).stdout
            raise AssertionError(f"not within {GIVE_UP} s: {states(folder)}\n{queue}\n{logs(folder)[-3000:]}")
        time.sleep(0.5)


def over(folder: Path, count: int) -> Callable[[], bool]:
    return lambda: states(folder) == {"completed": count}


def test_a_real_slurm_answers(cluster):
    assert slurm.partitions() == ("main",)
    number = slurm.submit(["sbatch", "--parsable", "--array=0-2", "--output=/dev/null", "--wrap=sleep 600"], os.environ)
    jobs = slurm.queue([number])
    assert sorted(job.task for job in jobs) == ["0", "1", "2"] and {job.array for job in jobs} == {number}
    slurm.cancel([number])
    assert all(job.state in ("COMPLETING", "CANCELLED") for job in slurm.queue([number]))
    assert slurm.queue([10**9]) == (), "one that Slurm has forgotten, or never had"


def test_two_nodes_do_a_sweep_and_kdx_knows_their_jobs(cluster, tmp_path):
    folder = written(tmp_path / "here", 1000, 1)
    refused = kdx(folder, "sweep", "grid.yaml", "--slurm", "--partition", "no-such")
    assert refused.returncode == 2 and "invalid partition" in refused.stderr and "allowed: main" in refused.stderr
    assert list(folder.glob("runs.files/slurm/*")) == [], "nothing is half submitted"
    gpus = ("--gpus-per-node", "2")
    done = kdx(folder, "sweep", "grid.yaml", "--slurm", "--jobs", "2", "--time", "30", *gpus, KDX_PER_GPU="7")
    assert done.returncode == 0, done.stderr
    assert "submitted 2 jobs (" in done.stderr and "for 4 runs of swept" in done.stderr
    array = int(done.stderr.partition("submitted 2 jobs (")[2].partition(")")[0])
    (found,) = json.loads(kdx(folder, "status", "--json").stdout)
    assert found["slurm"][0]["array"] == array
    assert {job["state"] for job in found["slurm"][0]["queued"]} <= {"RUNNING", "PENDING", "CONFIGURING"}
    until(lambda: re.search(rf"{array}_0 .*RUNNING", kdx(folder, "status", "swept").stdout) is not None, folder)
    until(lambda: bool(asked(folder, "SELECT 1 FROM run WHERE progress_step > 0")), folder)
    # Before its time limit Slurm tells a job; it leaves checkpoints and waits to begin again.
    subprocess.run(["scancel", "--signal=USR2", "--batch", f"{array}_0"], check=True)
    until(lambda: "it is queued again" in kdx(folder, "logs", f"{array}_0").stdout, folder)
    until(over(folder, 4), folder)
    # The cluster's GPUs are played: runs computed on the processor, and record no GPU.
    environments = [json.loads(text) for (text,) in asked(folder, "SELECT environment FROM environment")]
    assert all(run["device"] == "cpu" and "gpu" not in run for run in environments)
    # Nothing is left, but the job still waits to begin again.
    ended = kdx(folder, "cancel", "swept")
    assert "out of Slurm's queue" in ended.stderr
    until(lambda: not subprocess.run(["squeue", "-h"], capture_output=True, check=True).stdout, folder)
    assert kdx(folder, "resume", "swept", "--slurm").stderr.startswith("nothing is unfinished")


def test_a_name_is_never_run_by_a_shell_of_a_job(cluster, tmp_path):
    folder = written(tmp_path / "here", 100_000, 1)
    name = "x$(touch RAN)`touch RAN`';touch RAN;'"
    grid = folder / "grid.yaml"
    grid.write_text(grid.read_text().replace("name: swept", f"name: {json.dumps(name)}"))
    done = kdx(folder, "sweep", "grid.yaml", "--slurm", "--jobs", "1", "--slurm-requeues", "0")
    assert done.returncode == 0, done.stderr
    array = int(done.stderr.partition("submitted 1 job (")[2].partition(")")[0])
    until(lambda: bool(asked(folder, "SELECT 1 FROM run WHERE progress_step > 100")), folder)
    subprocess.run(["scancel", "--signal=USR2", "--batch", f"{array}_0"], check=True)
    until(lambda: "which is the limit" in logs(folder), folder)
    assert f"kdx resume {shlex.quote(name)} --slurm submits new ones" in logs(folder)
    assert not list(tmp_path.rglob("RAN"))


@pytest.mark.long
def test_a_node_that_dies_loses_no_run_and_no_bit(cluster, tmp_path, figure):
    here = written(tmp_path / "here", 800, 10)
    done = kdx(here, "sweep", "grid.yaml", "--slurm", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    until(lambda: states(here).get("completed", 0) >= 6, here)
    killed = kill_node(cluster, "n2")
    assert killed
    until(lambda: states(here).get("completed", 0) >= 20, here)
    subprocess.run(["slurmd", "-N", "n2"], check=True)
    until(over(here, 40), here)
    there = written(tmp_path / "there", 800, 10)
    local = kdx(there, "sweep", "grid.yaml", "--workers", "2")
    assert local.returncode == 0, local.stderr
    assert numbers(here) == numbers(there)
    attempts = asked(here, "SELECT count(*) FROM attempt")[0][0]
    figure(
        f"{killed} processes of a node killed: 40 of 40 runs completed in {attempts} attempts, identical to local ones"
    )
    subprocess.run(["scancel", "--me"], check=False)


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("bwrap") is None or not MODULES.exists(), reason="no bubblewrap, or no environment-modules"
)
def test_workers_run_in_a_container_that_a_module_brings(cluster, tmp_path):
    """The command is known where the module is loaded, and Python lies there where the container is entered."""
    folder = written(tmp_path / "here", 20, 1)
    command = tmp_path / "bin" / "in-container"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec bwrap --dev-bind / / --tmpfs /mnt --ro-bind {sys.prefix} /mnt/inside "$@"\n')
    command.chmod(0o755)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "containers").write_text(f"#%Module\nprepend-path PATH {command.parent}\n")
    asked_for = (
        "sweep",
        "grid.yaml",
        "--slurm",
        "--jobs",
        "1",
        "--slurm-python",
        "in-container /mnt/inside/bin/python",
    )
    without = kdx(folder, *asked_for)
    assert without.returncode == 0, without.stderr
    until(lambda: "in-container: command not found" in logs(folder), folder)
    setup = f"source {MODULES}; module use {tmp_path / 'modules'}; module load containers"
    done = kdx(folder, *asked_for, "--slurm-setup", setup)
    assert done.returncode == 0, done.stderr
    until(over(folder, 4), folder)


def kill_node(cluster: Path, node: str) -> int:
    """All of its processes at once, as a crash ends them; returns how many."""
    daemon = int((cluster / f"slurmd.{node}.pid").read_text())
    jobs = subprocess.run(
        ["squeue", "-h", "--array", "-w", node, "-o", "%A"], capture_output=True, text=True, check=True
    ).stdout.split()
    steps = [
        int(pid)
        for job in jobs
        for pid in subprocess.run(
            ["pgrep", "-f", rf"^slurmstepd: \[{job}\.batch\]"], capture_output=True, text=True, check=False
        ).stdout.split()
    ]
    doomed = [daemon, *steps, *(pid for step in steps for pid in below(step))]
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    return len(doomed)


def below(process: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True, check=False).stdout.split()
    return [pid for child in map(int, found) for pid in (child, *below(child))]
