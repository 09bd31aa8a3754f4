"""The options of commands that submit workers to Slurm."""

import pytest
from looked_after import planned, refused


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_what_is_asked_of_slurm_without_it_is_refused():
    planned(1)
    assert refused("sweep", "grid.yaml", "--time", "10").problem == "--time without --slurm"
    assert "exclude each other" in refused("sweep", "grid.yaml", "--slurm", "--budget", "1h").problem
    assert "kdx sets array itself" in refused("sweep", "grid.yaml", "--slurm", "--sbatch=--array=1").problem
