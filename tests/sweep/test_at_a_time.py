"""A machine is told by a hash that stays the same and gives nothing away, and takes as many runs as it has places."""

import os

import pytest

from kdx.errors import KdxError
from kdx.sweep.at_a_time import AtATime, take_devices
from kdx.sweep.gpus import visible_gpus

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("workers", "per_gpu", "gpus", "runs", "on_each", "sharing"),
    [
        (None, None, 0, CORES, 1, CORES),
        (7, None, 0, 7, 7, 7),
        (7, 2, 0, 7, 2, 7),
        (None, None, 4, 4, 1, 1),
        (None, 3, 4, 12, 3, 3),
        (5, 3, 4, 5, 3, 3),
        (2, 3, 4, 2, 3, 2),
        (5, None, 4, 5, 2, 2),
        (2, None, 4, 2, 1, 1),
        (None, "auto", 4, max(4, CORES), None, 1),
        (3, "auto", 4, 3, None, 1),
    ],
)
def test_as_many_runs_go_at_a_time_as_there_are_places(workers, per_gpu, gpus, runs, on_each, sharing):
    asked = AtATime(workers, per_gpu)
    assert (asked.runs(gpus), asked.on_each(gpus), asked.sharing(gpus)) == (runs, on_each, sharing)


@pytest.mark.parametrize(
    ("named", "seen"),
    [("0", ("0",)), ("3, 0", ("3", "0")), ("GPU-8f3a,MIG-1c/2/0", ("GPU-8f3a", "MIG-1c/2/0")), ("none", ())],
)
def test_the_devices_that_somebody_names_are_taken(monkeypatch, named, seen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    monkeypatch.setattr("kdx.sweep.at_a_time.gpus_of_machine", lambda: 4)
    take_devices(named)
    assert visible_gpus() == seen
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@pytest.mark.parametrize("named", ["", "0,,1", "0,none", "-1", "all", "0;1", "GPU-", "٣"])
def test_what_names_no_devices_is_refused(monkeypatch, named):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    with pytest.raises(KdxError) as fault:
        take_devices(named)
    assert str(fault.value) == f"--devices `{named}`\n  allowed: GPUs such as 0,2 or GPU-8f3a, or none"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"


@pytest.mark.parametrize(
    ("count", "named", "message"),
    [
        (0, "7", "--devices `7`: no GPU 7 here\n  allowed: none, for no GPU is here"),
        (0, "GPU-8f3a", "--devices `GPU-8f3a`: no GPU GPU-8f3a here\n  allowed: none, for no GPU is here"),
        (1, "1", "--devices `1`: no GPU 1 here\n  allowed: GPU 0, or none"),
        (4, "0,4", "--devices `0,4`: no GPU 4 here\n  allowed: GPU 0 to 3, or none"),
    ],
)
def test_a_gpu_that_the_machine_lacks_is_refused(monkeypatch, count, named, message):
    """CUDA passes over it, and the run would compute on the processor."""
    monkeypatch.setattr("kdx.sweep.at_a_time.gpus_of_machine", lambda: count)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    with pytest.raises(KdxError) as fault:
        take_devices(named)
    assert str(fault.value) == message
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"
