"""The optimiser and its clipping, as all tasks have them."""

import math

import pytest
import torch
from runs import cell
from torch import Tensor, nn

from kdx.training.module import TaskModule, exponential
from kdx.vocabulary import Optimiser


def one_weight(**training) -> TaskModule:
    """A module whose one trained parameter is 1."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    return TaskModule(cell("prediction", **training), model)


@pytest.mark.parametrize(("clip", "expected"), [(None, 5.0), (1.0, 1.0), (10.0, 5.0)])
def test_the_gradient_is_clipped_to_its_norm_and_never_enlarged(clip, expected):
    module = one_weight(clip=clip)
    module.model.weight.grad = torch.full((1, 1), 5.0)
    module.on_before_optimizer_step(None)
    assert module.model.weight.grad.item() == pytest.approx(expected, rel=1e-5)
    # The norm before clipping, known only where the cell clips.
    assert (module.gradient_norm is None) is (clip is None)
    assert module.gradient_norm is None or module.gradient_norm.item() == 5.0


def test_the_optimiser_is_adamw_as_the_cell_says():
    training = {"learning_rate": 0.5, "betas": (0.8, 0.9), "epsilon": 1e-3, "weight_decay": 0.1, "schedule": "constant"}
    module = one_weight(warmup=0, **training)
    made = module.configure_optimizers()
    optimizer, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    module.model.weight.grad = torch.full((1, 1), 0.3)
    optimizer.step()
    scheduler.step()
    # Bias correction makes the first step's moments the gradient itself (Loshchilov & Hutter 2019, Algorithm 2).
    assert module.model.weight.item() == pytest.approx(1 - 0.5 * (0.3 / (0.3 + 1e-3) + 0.1), rel=1e-5)
    assert scheduler.get_last_lr() == [0.5]


@pytest.mark.parametrize("optimiser", Optimiser)
def test_an_optimiser_gives_the_same_bits_wherever_weights_lie_in_memory(optimiser):
    def steps(offset: int) -> list[Tensor]:
        module, generator = one_weight(optimiser=optimiser), torch.Generator().manual_seed(0)
        shapes = [(7,), (33, 17), (129, 65)]
        parameters = []
        for shape in shapes:
            memory = torch.empty(math.prod(shape) + offset)[offset:].view(shape)
            parameters.append(nn.Parameter(memory.copy_(torch.randn(shape, generator=generator))))
        module.model.bias = parameters[0]
        module.model.layers = nn.ModuleList(nn.Linear(1, 1, bias=False) for _ in parameters[1:])
        for linear, parameter in zip(module.model.layers, parameters[1:], strict=True):
            linear.weight = parameter
        optimizer = module.configure_optimizers()["optimizer"]
        for _ in range(5):
            for parameter in parameters:
                parameter.grad = torch.randn(parameter.shape, generator=generator)
            optimizer.step()
        return parameters

    first = steps(0)
    for offset in range(1, 17):
        assert all(torch.equal(one, other) for one, other in zip(first, steps(offset), strict=True))


@pytest.mark.parametrize(
    ("loss", "expected"), [(0.0, 1.0), (1.0, math.e), (700.0, math.inf), (1e9, math.inf), (math.inf, math.inf)]
)
def test_a_perplexity_beyond_any_float_is_infinite(loss, expected):
    assert exponential(loss) == expected
