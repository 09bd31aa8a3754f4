"""The unit of an error is what rounding costs, and it makes out what is more than rounding."""

import math

import pytest
import torch
from torch import Tensor, nn

from kdx.attention import KernelAttention
from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.verification.rounding import ROUNDINGS, condition, largest, roundings

NOTHING = nn.Module()


def numbers(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_a_sum_moves_by_the_root_of_the_squares_of_its_terms() -> None:
    def total(_, terms: Tensor) -> Tensor:
        return terms.sum(-1, keepdim=True)

    result = condition(total, NOTHING, numbers([3, 4, 0], [3000, -3000, 0]), draws=2000)
    torch.testing.assert_close(result, numbers([7 + 5], [3000 * math.sqrt(2)]), rtol=0.05, atol=0)


def test_the_largest_number_of_a_row_makes_its_unit() -> None:
    result = condition(lambda _, rows: rows, NOTHING, numbers([1, -100], [2, 0]), draws=2000)
    torch.testing.assert_close(result, numbers([200], [4]), rtol=0.05, atol=0)


def test_a_row_whose_signed_weights_nearly_cancel_has_the_square_of_their_ratio_for_its_unit() -> None:
    values = numbers([1, 0], [0, 1])

    def smoothed(_, weights: Tensor) -> Tensor:
        return weights / weights.sum(-1, keepdim=True) @ values

    ratios = torch.tensor([10.0, 100.0, 1000.0])
    # w = (1 + c, 1 - c) / 2: |Σ w| = 1, Σ |w| = c.
    result = condition(smoothed, NOTHING, torch.stack([1 + ratios, 1 - ratios], -1).double() / 2)
    growth = result[1:] / result[:-1]
    assert ((growth > 80) & (growth < 120)).all()


def test_parameters_buffers_and_angles_of_sinusoids_move_and_are_then_as_they_were() -> None:
    x = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    module = KernelAttention(4, 2, positions=["product", "alibi"]).double().eval()
    module.register_buffer("places", torch.arange(3))
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    output = module(x)
    condition(lambda module, x: module(x[:, module.places]), module, x)
    assert torch.equal(module(x), output)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())

    linear, nothing = nn.Linear(2, 1, bias=False).double(), torch.zeros(1, 1)
    weight = linear.weight.detach().abs().sum() + linear.weight.detach().square().sum().sqrt()
    unit = condition(lambda module: module(torch.ones(1, 2, dtype=torch.float64)), linear, draws=2000)
    assert nothing.size() == unit.size() and weight / 3 < float(unit) <= 1.1 * float(weight)

    sinusoid = Sinusoidal(2, 1).double()
    near, far = (condition(lambda module, at=at: module(torch.tensor([at])), sinusoid) for at in (1, 10_000))
    assert float(near) < 4 and float(far) > 1000


def test_an_error_counts_in_roundings_of_the_format_that_it_is_found_in() -> None:
    expected, unit = numbers([1.0, 2.0], [3.0, 4.0]), numbers([10.0], [1000.0])
    for dtype in (torch.float64, torch.float32):
        step = torch.finfo(dtype).eps
        result = (expected + numbers([0, 0], [0, 4096 * step])).to(dtype)
        assert roundings(result, expected, unit) == pytest.approx(4.096)


def test_what_is_computed_from_nothing_must_be_nothing() -> None:
    nothing = numbers([0.0, 0.0])
    assert roundings(nothing, nothing, numbers([0.0])) == 0
    assert roundings(numbers([0.0, 1e-30]), nothing, numbers([0.0])) > ROUNDINGS


def test_what_is_no_number_is_the_largest_error() -> None:
    assert math.isnan(roundings(numbers([math.nan, 1.0]), numbers([1.0, 1.0]), numbers([1.0])))
    assert math.isnan(largest([3.0, math.nan, 5.0])) and largest([3.0, 5.0]) == 5
