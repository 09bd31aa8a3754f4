"""What is finite in float32 alone is a fault of arithmetic; what is not finite there either is a divergence."""

import math
import traceback

import pytest
import torch
from runs import STEPS, cell, run, save_every_step
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from kdx.grid.load import load_grid
from kdx.grid.spec import CellSpec
from kdx.sweep.blocked import signature
from kdx.sweep.messages import describe_error
from kdx.training import divergence
from kdx.training.divergence import ArithmeticFault, Finite
from kdx.training.module import TaskModule
from kdx.training.prediction import PredictionModule

KERNELS = '''"""Kernels that are exponential, but for what is no number."""

import math

import torch
from torch import Tensor

from kdx.attention.interfaces import KernelFunction


class Exponential(KernelFunction):
    """Exponential of the scaled dot product."""

    formula = "k(q, k) = exp(⟨q, k⟩ / √D)"
    source = "a test"
    gives = "logarithm"

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))


class Narrow(Exponential):
    """No number in half precision."""

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        product = super().log_weight(query, key)
        return product * math.nan if product.dtype is torch.bfloat16 else product


class NarrowGradient(Exponential):
    """Its gradient is no number in half precision."""

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        product = super().log_weight(query, key)
        if product.requires_grad and product.dtype is torch.bfloat16:
            product.register_hook(lambda gradient: gradient * math.nan)
        return product


class AnyGradient(Exponential):
    """Its gradient is infinite in every format."""

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        product = super().log_weight(query, key)
        if product.requires_grad:
            product.register_hook(lambda gradient: gradient + math.inf)
        return product
'''
GRID = """
task: prediction
kernel: kernels.py:%s
position: direct-sum
data: {corpus: synthetic-language, train_lines: 300}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16, dropout: 0.2}
training: {steps: 12, batch_tokens: 256, length: 16, warmup: 3, validate_every: 5, record_every: 1, precision: %s}
"""
IN_BF16 = "in bf16 at step 0, and finite in float32 with plain attention: a fault of arithmetic and no divergence"


@pytest.fixture
def spec_of(tmp_path, components):
    """A cell with one of these kernels."""
    (tmp_path / "kernels.py").write_text(KERNELS)

    def spec(kernel: str, precision: str = "bf16") -> CellSpec:
        (tmp_path / "grid.yaml").write_text(GRID % (kernel, precision))
        return load_grid(tmp_path / "grid.yaml").cells[0].spec

    return spec


@pytest.mark.parametrize(
    ("kernel", "what"), [("Narrow", "training loss"), ("NarrowGradient", "gradient of the training loss")]
)
def test_what_float32_can_compute_fails_and_says_so(kernel, what, spec_of, train, figure):
    with pytest.raises(ArithmeticFault) as failed:
        train(spec_of(kernel))
    said = describe_error(failed.value)
    assert said == f"{what} is nan {IN_BF16}; set training.precision to fp32"
    figure(said)


def test_the_step_is_computed_again_as_float32_would_have_computed_it(spec_of, train, home, tmp_path, monkeypatch):
    """The same weights, batch and dropout, so the same bits as in the first row of a run in float32."""
    again, loss = [], PredictionModule.loss

    def watched(module, batch):
        found = loss(module, batch)
        again.append(found.item())
        return found

    with monkeypatch.context() as patch:
        patch.setattr(PredictionModule, "loss", watched)
        with pytest.raises(ArithmeticFault):
            train(spec_of("Narrow"))
    assert math.isnan(again[0]) and len(again) == 2
    first = run(spec_of("Narrow", "fp32"), tmp_path / "fp32", home).column("train/loss")[1]
    assert again[1] == first


def test_a_gradient_that_float32_cannot_compute_either_is_a_divergence(spec_of, train):
    done = train(spec_of("AnyGradient"))
    assert (done.outcome.diverged, done.outcome.step) == ("gradient of the training loss is nan at step 0", 0)
    assert math.isfinite(done.column("train/loss")[1])


def narrow(module: TaskModule, *, training: bool) -> bool:
    return module.training is training and torch.is_autocast_enabled("cpu")


@pytest.fixture
def lost_in_bf16(monkeypatch):
    """Make the model give NaN in half precision from step 7 on, in training or in validation."""

    def lose(*, training: bool) -> list[list]:
        read, memories = PredictionModule.hidden_and_targets, []

        def overflow(module, batch):
            lost = module.trainer.global_step >= 7 and narrow(module, training=training)
            if module.trainer.global_step >= 7 and module.training is training:
                memories.append(list(module.remembered[training].layers))
            hidden, targets = read(module, batch)
            return hidden * (math.nan if lost else 1.0), targets

        monkeypatch.setattr(PredictionModule, "hidden_and_targets", overflow)
        return memories

    return lose


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_fault_is_told_with_its_step_and_what_the_batch_remembers_is_put_back(accumulate, lost_in_bf16, train):
    memories = lost_in_bf16(training=True)
    spec = cell("prediction", precision="bf16", accumulate=accumulate, axes={"memory": 8, "position": "relative"})
    with pytest.raises(ArithmeticFault, match="training loss is nan in bf16 at step 7, and finite in float32"):
        train(spec)
    first, again = memories
    assert len(first) == 1 and all(one is other for one, other in zip(first, again, strict=True))


def test_a_validation_is_told_apart_alike(lost_in_bf16, train):
    lost_in_bf16(training=False)
    with pytest.raises(ArithmeticFault, match="validation loss is nan in bf16 at step 10, and finite in float32"):
        train(cell("prediction", precision="bf16"))


def test_a_validation_that_float32_cannot_compute_either_is_a_divergence_with_its_rows(train, monkeypatch):
    """One batch is NaN, and later ones are finite: they say nothing about the sum."""
    read, batches = PredictionModule.hidden_and_targets, []

    def overflow(module, batch):
        hidden, targets = read(module, batch)
        if not module.training:
            batches.append(batch.begins)
        return hidden * (math.inf if not module.training and batch.begins else 1.0), targets

    monkeypatch.setattr(PredictionModule, "hidden_and_targets", overflow)
    done = train(cell("prediction", precision="bf16"))
    assert not all(batches)
    assert done.outcome.diverged == "validation loss is nan at step 5"
    assert math.isnan(done.column("valid/loss")[5])


def test_a_run_that_failed_so_can_be_resumed_from_its_checkpoint(lost_in_bf16, home, tmp_path, monkeypatch):
    spec = cell("prediction", precision="bf16")
    save_every_step(monkeypatch)
    lost_in_bf16(training=True)
    with pytest.raises(ArithmeticFault):
        run(spec, tmp_path, home)
    monkeypatch.undo()
    done = run(spec, tmp_path, home)
    assert min(done.column("train/loss")) == 8 and done.outcome.step == STEPS


def test_what_is_computed_again_is_in_float32_and_asks_no_fused_kernel():
    query, module = torch.ones(1, 1, 2, 4), TaskModule(cell("prediction"), nn.Linear(1, 1))
    with torch.autocast("cpu", torch.bfloat16), divergence._plain_float32(module):
        assert (query @ query.mT).dtype is scaled_dot_product_attention(query, query, query).dtype is torch.float32
        names = ("flash", "mem_efficient", "cudnn", "math")
        allowed = [name for name in names if getattr(torch.backends.cuda, f"{name}_sdp_enabled")()]
    assert allowed == ["math"]


class OnAGPU(TaskModule):
    device = torch.device("cuda")


@pytest.mark.parametrize(
    ("kind", "precision", "looks"),
    [(TaskModule, "fp32", False), (TaskModule, "bf16", True), (OnAGPU, "fp32", True), (OnAGPU, "bf16", True)],
)
def test_gradients_are_looked_at_in_half_precision_and_on_a_gpu(kind, precision, looks, monkeypatch):
    module, ended = kind(cell("prediction", precision=precision), nn.Linear(3, 1)), []
    monkeypatch.setattr(Finite, "_end", lambda self, trainer, module, what, found: ended.append((what, found)))
    module.model.weight.grad = torch.tensor([[1.0, math.inf, 1e30]])
    Finite(0).on_after_backward(None, module)
    assert ended == [("gradient of the training loss", math.inf)] * looks


@pytest.mark.parametrize(
    ("training", "remedy"),
    [
        ({"precision": "bf16"}, "set training.precision to fp32"),
        ({"precision": "bf16", "arithmetic": "fast"}, "set training.precision to fp32 or training.arithmetic to exact"),
        ({"arithmetic": "fast"}, "set training.arithmetic to exact"),
        ({}, "try another device, or another version of torch"),
    ],
)
def test_each_fault_has_a_remedy(training, remedy):
    spec = cell("prediction", **training)
    assert str(divergence._fault("training loss", math.nan, 3, spec.training)).endswith(f"; {remedy}")


def test_faults_of_a_cell_have_one_signature(spec_of, tmp_path, home):
    """A cell of which two runs fail like this is paused."""
    found = set()
    for seed in range(2):
        try:
            run(spec_of("Narrow"), tmp_path / str(seed), home, seed)
        except ArithmeticFault as fault:
            found.add(signature(describe_error(fault), traceback.format_exc()))
    assert found == {"ArithmeticFault in _end (divergence.py)"}
