"""`kdx verify` prints the largest errors; checking a custom component ends in these or in one message."""

import json
import subprocess
import sys

import pytest
import torch
import typer

from kdx.attention.verification import cases
from kdx.attention.verification.cases import Finding
from kdx.cli.verify import Device, verify
from kdx.errors import KdxError


@pytest.fixture
def two_checks(monkeypatch):
    """A check that holds and one that does not, in place of all."""
    found = [
        Finding("a square is no root", "exponential", 1.5),
        Finding("a square is no root", "rbf", 50.0),
        Finding("one is one", "exponential", 0.0),
    ]
    monkeypatch.setattr(
        cases, "checks", lambda device: {"kernel rbf": lambda: found[:2], "a choice": lambda: found[2:]}
    )


def test_a_miss_is_named_and_gives_exit_code_5(two_checks, capsys):
    with pytest.raises(typer.Exit) as end:
        verify(Device.CPU)
    assert end.value.exit_code == 5
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "property             variants  largest error in roundings",
        "a square is no root         2  50",
        "MISSED by rbf                  50",
        "one is one                  1  0",
    ]
    assert captured.err == "3 checks of properties: 1 missed\n"


def test_it_reports_how_far_it_is(two_checks, capsys, monkeypatch):
    monkeypatch.setattr("kdx.cli.verify.EVERY", 0.0)
    with pytest.raises(typer.Exit):
        verify(Device.CPU)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["0 of 2 components and choices checked", "1 of 2 components and choices checked"]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(typer.Exit):
        verify(Device.CPU)
    assert capsys.readouterr().err.startswith("\r\x1b[K1 of 2: kernel rbf …\r\x1b[K2 of 2: a choice …\r\x1b[K3 checks")


def test_programs_get_every_check(two_checks, capsys):
    with pytest.raises(typer.Exit):
        verify(Device.CPU, json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [(row["variant"], row["check"], row["holds"]) for row in rows] == [
        ("exponential", "a square is no root", True),
        ("rbf", "a square is no root", False),
        ("exponential", "one is one", True),
    ]


def test_a_device_that_this_machine_lacks_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for built_for, problem in ((None, "this torch is built without CUDA"), ("12.4", "torch finds no GPU")):
        monkeypatch.setattr(torch.version, "cuda", built_for)
        with pytest.raises(KdxError, match=f"--device cuda: {problem}"):
            verify(Device.CUDA)


HONEST = "return 1 / (1 + squared_distance(query, key) / self.bandwidth**2)"


def verified(folder) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kdx", "verify", "--component", "my_kernels.py:Cauchy"]
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
    done = verified(own_kernel)
    assert (done.returncode, "61 checks of properties: all hold" in done.stderr) == (0, True)
    assert len(done.stdout) < 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import sys; sys.exit(0)", "my_kernels.py:19:1: `my_kernels.py:Cauchy` fails: SystemExit: 0"),
        (
            f"{HONEST} * (1 + key.new_ones(key.size(-2)).cumsum(0).flip(0))",
            "or on keys after the query",
        ),
        ("query.new_empty(()).uniform_(); " + HONEST, "it draws from torch's random numbers when it computes"),
    ],
)
def test_what_is_no_kernel_is_one_message(own_kernel, body, message):
    edit(own_kernel, body)
    done = verified(own_kernel)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_a_loop_comes_to_an_end(own_kernel, monkeypatch, capsys):
    edit(own_kernel, "while True: pass")
    monkeypatch.setattr("kdx.cli.verify.WITHIN", 20)
    monkeypatch.chdir(own_kernel)
    with pytest.raises(KdxError, match="does not come to an end") as caught:
        verify(component="my_kernels.py:Cauchy")
    assert caught.value.place.file == "my_kernels.py"


@pytest.mark.slow
def test_a_miss_says_what_is_wrong(own_kernel):
    edit(own_kernel, "square = squared_distance(query, key); return 1 + 1e4 * square - 1e4 * square")
    done = verified(own_kernel)
    assert done.returncode == 5
    missed = "my_kernels.py:10:1: `my_kernels.py:Cauchy` misses `half precision`: in bf16 it loses more digits"
    assert missed in done.stderr
