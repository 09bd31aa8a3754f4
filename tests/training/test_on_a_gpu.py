"""Runs on a GPU, as far as one can tell without: no operation mixes devices, none lacks a deterministic form."""

import pytest
import torch
from fake_gpu import GPU, fake_gpu
from runs import TASKS, cell, run
from test_examples import (
    ARMS,
    few_examples,  # noqa: F401  # it is for every test of this file
)
from test_examples import cell as example_cell
from test_layers import three_steps

from kdx.attention.encodings import ENCODINGS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.training.determinism import deterministic

pytestmark = pytest.mark.slow

CHOICES = [
    *({"kernel": name} for name in KERNELS),
    *({"normaliser": name} for name in NORMALISERS),
    *({"mixer": name} for name in MIXERS),
    *({"position": name, "inject": "per-layer"} for name in POSITIONS),
    *({"position": "direct-sum", "inject": "per-layer", "encoding": name} for name in ENCODINGS),
    *({"value": name} for name in VALUES),
]


@pytest.mark.parametrize("arm", [*TASKS, *ARMS])
def test_every_task_trains_resumes_and_is_tested_on_a_gpu(arm, home, tmp_path):
    spec = three_steps(cell(arm) if arm in TASKS else example_cell(arm))
    with fake_gpu():
        assert run(spec, tmp_path / "run", home, stop_after=2).outcome is None
        resumed = run(spec, tmp_path / "run", home)
    ((_, environment, _, _, step, *_),) = resumed.of("begin")
    assert (environment["device"], step) == ("a GPU that is not there", 2)
    assert resumed.outcome.test_score is not None


def test_a_memory_of_the_segment_before_resumes_on_a_gpu(home, tmp_path):
    # The text begins anew at step 8, and forgets.
    spec = cell("prediction", axes={"position": "none", "memory": 8})
    with fake_gpu():
        assert run(spec, tmp_path / "run", home, stop_after=3).outcome is None
        assert run(spec, tmp_path / "run", home).outcome.test_score is not None


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(choice.values()))
def test_every_component_trains_on_a_gpu(choice, home, tmp_path):
    spec = three_steps(cell("prediction"), **({"position": "none"} | choice))
    with fake_gpu():
        assert run(spec, tmp_path / "run", home).outcome.test_score is not None


def test_a_fake_gpu_refuses_what_a_real_one_would():
    with fake_gpu():
        x = torch.ones(3, device="cuda", requires_grad=True)
        assert x.device == GPU and (x * torch.arange(3, device=x.device)).sum().item() == 3
        for mixed in (lambda: x + torch.ones(3), lambda: torch.ones(3)[torch.zeros(2, dtype=torch.long, device=GPU)]):
            with pytest.raises(RuntimeError, match="on cuda:0 and on cpu"):
                mixed()
        with pytest.raises(TypeError, match="to numpy"):
            x.detach().numpy()
        with deterministic(), pytest.raises(RuntimeError, match="no deterministic form"):
            x.cumsum(0)
