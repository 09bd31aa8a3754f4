"""A real Slurm of two nodes on this machine, and one that is played, for what a real one does in hours or never."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

START = Path(__file__).with_name("start_cluster.sh")


def missing() -> str | None:
    """Why there can be no cluster here."""
    if os.geteuid() != 0:
        return "Slurm's daemons are started by root"
    absent = [name for name in ("slurmctld", "slurmd", "sbatch", "munged") if shutil.which(name) is None]
    return f"no {', '.join(absent)}: apt-get install slurm-wlm munge" if absent else None


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Path:
    """The folder with the state of a cluster of two nodes, n1 and n2, with one core each."""
    if why := missing():
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("slurm")
    subprocess.run(["bash", str(START), str(folder)], check=True, capture_output=True, text=True)
    yield folder
    subprocess.run(["scontrol", "shutdown"], check=False, capture_output=True)


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Programs that answer as they are told: `played(sbatch="echo 7")`; each keeps its arguments and its input."""
    folder = tmp_path / "played"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def play(**programs: str) -> Path:
        for name, text in programs.items():
            file = folder / name
            file.write_text(f'#!/bin/bash\necho "$@" >> {folder}/{name}.words\n{text}\n')
            file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return folder

    return play
