"""A real Slurm of two nodes on this machine."""

import os
import shutil
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
