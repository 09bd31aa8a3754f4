"""Where libraries compute otherwise, the canary is another, and nowhere else."""

import os
import subprocess
import sys

import pytest
import torch

from kdx.grid.sections import Training
from kdx.training.canary import LENGTH, canary
from kdx.training.determinism import fix_arithmetic
from kdx.vocabulary import Precision

CPU = torch.device("cpu")
PRINTS = """
import sys
import torch
from kdx.grid.sections import Training
from kdx.vocabulary import Precision
from kdx.training.canary import canary
from kdx.training.determinism import fix_arithmetic
fix_arithmetic(Training(threads=int(sys.argv[1])))
print(*[canary(torch.device("cpu"), precision) for precision in Precision])
"""


def start(threads: int = 1, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRINTS, str(threads)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | variables)


def said(process: subprocess.Popen[str]) -> dict[Precision, str]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return dict(zip(Precision, out.split(), strict=True))


@pytest.fixture(scope="module")
def usual() -> dict[Precision, str]:
    return said(start())


@pytest.mark.slow
def test_it_is_short_the_same_in_every_process_and_another_for_each_precision(usual):
    before = torch.get_num_threads()
    try:
        fix_arithmetic(Training())
        assert {precision: canary(CPU, precision) for precision in Precision} == usual
    finally:
        torch.set_num_threads(before)
    assert all(len(canary_text) == LENGTH for canary_text in usual.values()) and len(set(usual.values())) == len(
        Precision
    )


MKL = pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this torch has no MKL")
ONEDNN = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.mark.slow
@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param({"MKL_CBWR": "COMPATIBLE"}, marks=MKL),
        pytest.param({"ONEDNN_MAX_CPU_ISA": "SSE41"}, marks=ONEDNN),
        {"ATEN_CPU_CAPABILITY": "default"},
        {"threads": 2},
    ],
    ids=str,
)
def test_other_instructions_or_threads_give_another(conditions, usual, figure):
    other = said(start(**conditions))
    assert all(other[precision] != usual[precision] for precision in Precision)
    figure(f"{conditions}: {' '.join(usual.values())} → {' '.join(other.values())}")


def test_it_draws_no_random_number_and_leaves_every_setting():
    def state() -> tuple[object, ...]:
        return (
            torch.get_rng_state().tolist(),
            torch.is_grad_enabled(),
            torch.get_num_threads(),
            torch.get_default_dtype(),
            torch.is_autocast_enabled("cpu"),
            torch.are_deterministic_algorithms_enabled(),
            torch.utils.deterministic.fill_uninitialized_memory,
        )

    before = state()
    with torch.no_grad():
        canary(CPU, Precision.BF16)
    assert state() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("precision", Precision)
def test_on_a_gpu_it_repeats_and_leaves_the_generators(precision, figure):
    gpu = torch.device("cuda")
    torch.cuda.manual_seed_all(3)
    before = torch.cuda.get_rng_state()
    first = canary(gpu, precision)
    assert {canary(gpu, precision) for _ in range(20)} == {first}
    assert torch.equal(torch.cuda.get_rng_state(), before)
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        other = canary(gpu, precision)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    assert other != first
    figure(f"{precision}: {first}, with TF32 {other}")
