"""GPUs are found where the driver shows them and limited as the user names them; runs at a time follow from both."""

import os

import pytest

from kdx.errors import KdxError
from kdx.sweep.gpus import AtATime, memory, memory_of, take_devices, visible_gpus

CORES = len(os.sched_getaffinity(0))
TABLE = """
0, GPU-8f3a1c, 81559
1, GPU-77aa01, 40960
2, GPU-9b1100, [N/A]
No devices were found, or some other line
"""


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


def test_the_memory_is_what_the_driver_says(played):
    folder = played(**{"nvidia-smi": f"cat <<'END'{TABLE}END"})
    assert memory_of(("0", "GPU-77")) == {"0": 81559 * 2**20, "GPU-77": 40960 * 2**20}
    assert memory_of(("2", "7", "MIG-1")) == {}
    assert "--query-gpu=index,uuid,memory.total" in (folder / "nvidia-smi.words").read_text()


@pytest.mark.parametrize("program", ["exit 9", "echo Failed to initialise NVML", "printf '\\377'"])
def test_of_a_driver_that_fails_nothing_is_known(played, program):
    played(**{"nvidia-smi": program})
    assert memory_of(("0",)) == {}


def test_a_limit_of_the_system_counts_where_it_is_less_than_the_machine(tmp_path):
    everything = memory((), tmp_path)
    assert everything and everything > 2**20
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    limit = tmp_path / "sys/fs/cgroup/memory.max"
    for text, allowed in (("1000000\n", 1_000_000), ("max\n", everything), ("", everything)):
        limit.write_text(text)
        assert memory((), tmp_path) == allowed


def test_the_largest_gpu_decides(played):
    played(**{"nvidia-smi": 'printf "0, GPU-8f3a, 40960\\n1, GPU-77, 999999\\n2, GPU-9b, 81559\\n"'})
    assert memory(("0", "2")) == 81559 * 2**20


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
    monkeypatch.setattr("kdx.sweep.gpus.gpus_of_machine", lambda: 4)
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
    monkeypatch.setattr("kdx.sweep.gpus.gpus_of_machine", lambda: count)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    with pytest.raises(KdxError) as fault:
        take_devices(named)
    assert str(fault.value) == message
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"
