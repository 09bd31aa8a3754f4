"""A real Slurm of two nodes on this machine."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_until

LOCK = Path("/run/kdx-slurm.lock")
START = Path(__file__).with_name("start_cluster.sh")


def missing() -> str | None:
    """Why there can be no cluster here."""
    if os.geteuid() != 0:
        return "Slurm's daemons are started by root"
    absent = [name for name in ("slurmctld", "slurmd", "sbatch", "munged") if shutil.which(name) is None]
    return f"no {', '.join(absent)}: apt-get install slurm-wlm munge" if absent else None


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Path]:
    """The folder with the state of a cluster of two nodes, n1 and n2, with one core each; a machine has one at a time.

    Its configuration and its ports are those of the machine, so whoever tests beside this waits.
    """
    if why := missing():
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("slurm")
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["bash", str(START), str(folder)], check=True, capture_output=True, text=True)
        yield folder
        subprocess.run(["scontrol", "shutdown"], check=False, capture_output=True)
        states = ["ps", "-C", "slurmctld,slurmd", "-o", "state="]
        wait_until(lambda: not set(subprocess.run(states, capture_output=True, text=True).stdout.split()) - {"Z"})
