"""A part is checked in a process of its own: whatever it does ends in findings or in one message."""

import subprocess
import sys

import pytest

HONEST = "return 1 / (1 + squared_distance(query, key) / self.bandwidth**2)"


def verify(folder) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kdx", "verify", "--part", "my_kernels.py:Cauchy"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def edit(folder, body: str) -> None:
    file = folder / "my_kernels.py"
    assert HONEST in file.read_text()
    file.write_text(file.read_text().replace(HONEST, body))


@pytest.mark.long
@pytest.mark.parametrize(
    "before",
    ["print('x' * 300_000)", "import threading, time; threading.Thread(target=time.sleep, args=(9e9,)).start()"],
)
def test_what_a_part_does_beside_leaves_the_findings_alone(own_kernel, before):
    edit(own_kernel, f"{before}\n        {HONEST}")
    done = verify(own_kernel)
    assert (done.returncode, "45 checks of propositions: all hold" in done.stderr) == (0, True)
    assert len(done.stdout) < 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import sys; sys.exit(0)", "my_kernels.py:19:1: `my_kernels.py:Cauchy` fails: SystemExit: 0"),
        ("import os; os._exit(0)", "`my_kernels.py:Cauchy` ended the process that tried it, with code 0"),
        ("return None", "my_kernels.py:10:1: `my_kernels.py:Cauchy`: neither log_weight nor weight gives numbers"),
        (
            "return 1 / (1 + squared_distance(query.detach(), key))",
            "weight depends on query, and has no gradient by it",
        ),
        ("return squared_distance(query, key).long()", "allowed: torch.float64 (2, 2, 8, 9)"),
        ("query.new_empty(()).uniform_(); " + HONEST, "it draws from torch's random numbers when it computes"),
        ("import torch; torch.manual_seed(0); " + HONEST, "it seeds torch's random numbers when it computes"),
    ],
)
def test_what_is_no_kernel_is_one_message(own_kernel, body, told):
    edit(own_kernel, body)
    done = verify(own_kernel)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_a_loop_comes_to_an_end(own_kernel, monkeypatch, capsys):
    from kdx.cli.verify import verify as here
    from kdx.errors import KdxError

    edit(own_kernel, "while True: pass")
    monkeypatch.setattr("kdx.cli.verify.WITHIN", 20)
    monkeypatch.chdir(own_kernel)
    with pytest.raises(KdxError, match="does not come to an end") as caught:
        here(part="my_kernels.py:Cauchy")
    assert caught.value.place.file == "my_kernels.py"


@pytest.mark.slow
def test_a_miss_says_what_is_wrong(own_kernel):
    edit(own_kernel, f"{HONEST} * (1 + key.new_ones(key.size(-2)).cumsum(0).flip(0))")
    done = verify(own_kernel)
    assert done.returncode == 5
    missed = "my_kernels.py:10:1: `my_kernels.py:Cauchy` misses `cached decoding equals teacher forcing`: what it gives"
    assert missed in done.stderr
