import math

import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels.exponential import Exponential
from kdx.attention.kernels.rbf import RBF


def test_weight_is_the_exponential_of_the_scaled_squared_distance() -> None:
    query, key = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 2.0, 1.0, 1.0]]]])
    assert RBF(Settings(4, 1, 4)).log_weight(query, key).item() == pytest.approx(-(4 + 1) / math.sqrt(4))


def test_it_is_the_exponential_kernel_at_half_the_temperature_with_a_penalty_on_long_keys() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 4, 5).double(), torch.randn(1, 1, 6, 5).double()
    penalty = key.square().sum(-1).unsqueeze(-2) / math.sqrt(5)
    for temperature in (1.0, 2.0):
        rbf = RBF(Settings(5, 1, 5), temperature=temperature).log_weight(query, key)
        exponential = Exponential(Settings(5, 1, 5), temperature=temperature / 2).log_weight(query, key)
        expected = (exponential - penalty / temperature).softmax(-1)
        torch.testing.assert_close(rbf.softmax(-1), expected)


def test_gradient_at_distance_zero_is_zero() -> None:
    query = torch.ones(1, 1, 2, 3, requires_grad=True)
    RBF(Settings(4, 1, 4)).log_weight(query, torch.ones(1, 1, 2, 3)).sum().backward()
    assert (query.grad == 0).all()


@pytest.mark.parametrize("temperature", [1.0, 2.0, 0.3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-4)], ids=str)
def test_reduction_leaves_out_a_term_of_the_query_alone(
    dtype: torch.dtype, tolerance: float, temperature: float
) -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 4, 5, dtype=dtype), torch.randn(2, 1, 6, 5, dtype=dtype)
    kernel = RBF(Settings(4, 1, 4), temperature=temperature)
    q, k = kernel.dot_product(query, key)
    missing = q @ k.transpose(-2, -1) / math.sqrt(5) - kernel.log_weight(query, key)
    torch.testing.assert_close(missing, missing[..., :1].expand_as(missing), rtol=0, atol=tolerance)


def test_reduction_keeps_16_bits_of_the_norm_in_bf16() -> None:
    torch.manual_seed(0)
    key = (10 * torch.randn(1, 1, 50, 32)).bfloat16()
    query = torch.zeros_like(key)
    q, k = RBF(Settings(4, 1, 4)).dot_product(query, key)
    score = q.float() @ k.float().transpose(-2, -1)
    norm = key.float().square().sum(-1).unsqueeze(-2).expand_as(score)
    torch.testing.assert_close(-score, norm, rtol=2**-16, atol=0)
