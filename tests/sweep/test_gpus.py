"""GPUs are found where the driver shows them, unless the environment names those to take."""

import pytest

from kdx.sweep.gpus import least_used_gpu, visible_gpus


@pytest.fixture(autouse=True)
def unnamed(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_a_machine_without_a_driver_has_none(tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "null").touch()
    assert visible_gpus(tmp_path) == ()


@pytest.mark.parametrize("shown", ["proc/driver/nvidia/gpus/0000:%d:00.0", "dev/nvidia%d"])
def test_every_gpu_of_the_machine_is_counted(tmp_path, shown):
    for number in range(4):
        (tmp_path / (shown % number)).mkdir(parents=True)
    (tmp_path / "dev").mkdir(exist_ok=True)
    (tmp_path / "dev" / "nvidiactl").touch()
    assert visible_gpus(tmp_path) == ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("2,0", ("2", "0")),
        (" GPU-8f3a , 1 ", ("GPU-8f3a", "1")),
        ("1,-1,0", ("1",)),
        ("0,0", ("0",)),
        ("-1", ()),
        ("", ()),
    ],
)
def test_those_that_the_environment_names_are_taken(tmp_path, monkeypatch, named, found):
    (tmp_path / "dev/nvidia0").mkdir(parents=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert visible_gpus(tmp_path) == found


def test_a_run_gets_the_gpu_with_the_fewest_runs_and_the_first_of_several():
    assert least_used_gpu(("3", "1"), []) == "3"
    assert least_used_gpu(("3", "1"), ["3"]) == "1"
    assert least_used_gpu(("3", "1"), ["1", "3", "3"]) == "1"
    assert least_used_gpu(("3", "1"), [None, "0"]) == "3"  # one that is no longer to be had counts for nobody
    assert least_used_gpu((), ["0"]) is None
