"""Sweeps on GPUs that several runs share. There is none here: runs compute on the processor, and are placed alike."""

import json
from pathlib import Path

import pytest
from grids import TINY
from terminal import kdx

GREEDY = """
from pathlib import Path
import os
import torch
from kdx.attention.kernels.exponential import Exponential

class Greedy(Exponential):
    name = "greedy"

    def dot_product(self, query, key):
        parent = Path(f"/proc/{os.getppid()}")
        works = "fork_server_process" in (parent / "cmdline").read_text()  # else it is rehearsed
        beside = (parent / "task" / parent.name / "children").read_text().split()
        if works and (os.environ.get("TOO_LARGE") or len(beside) > 1):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return super().dot_product(query, key)
"""


@pytest.fixture
def folder(tmp_path, data_home, monkeypatch) -> Path:
    """A folder with a grid of short runs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (tmp_path / "grid.yaml").write_text(TINY % {"steps": 40, "seeds": 3})
    return tmp_path


@pytest.fixture
def greedy(folder) -> Path:
    """The folder with a kernel that lacks memory beside another run."""
    (folder / "greedy.py").write_text(GREEDY)
    (folder / "grid.yaml").write_text(TINY % {"steps": 10, "seeds": 2} + "kernel: greedy.py:Greedy\n")
    return folder


@pytest.mark.slow
def test_runs_that_lack_memory_beside_each_other_are_tried_once_more_alone(greedy):
    _, said = kdx("sweep", "grid.yaml", "--per-gpu", "2", folder=greedy)
    assert "2 runs: 2 completed" in said
    assert "is out of memory: " in said and "(beside other runs on GPU 0); it is tried once more alone" in said
    assert "once more alone, since it lacked memory beside others at step 0" in said
    shown = [json.loads(kdx("show", number, "--json", folder=greedy)[0]) for number in ("1", "2")]
    outcomes = [[attempt["outcome"] for attempt in run["attempts"]] for run in shown]
    assert ["interrupted", "completed"] in outcomes
    (first, *_), *_ = (run["attempts"] for run, tries in zip(shown, outcomes, strict=True) if len(tries) > 1)
    assert "OutOfMemoryError" in first["traceback"]


@pytest.mark.long
def test_a_run_that_lacks_memory_alone_fails(greedy, monkeypatch):
    monkeypatch.setenv("TOO_LARGE", "1")
    _, said = kdx("sweep", "grid.yaml", "--per-gpu", "2", "--set", "seeds=1", folder=greedy, code=4)
    assert "1 run: 1 failed" in said and said.count("started ") == 2
    status, _ = kdx("status", "tiny", folder=greedy)
    assert "CUDA out of memory." in status
