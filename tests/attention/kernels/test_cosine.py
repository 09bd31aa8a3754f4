import math

import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels.cosine import Cosine

Q, K = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, -7.0, 0.0]]]])
KERNEL = Cosine(Settings(4, 1, 4))


def test_log_weight_is_the_cosine_times_a_temperature_of_the_root_of_d_at_first() -> None:
    expected = 2 * 4 / math.sqrt(6 * 58.25)
    assert KERNEL.log_weight(Q, K).item() == pytest.approx(expected)
    assert KERNEL.log_weight(3 * Q, 5 * K).item() == pytest.approx(expected)


def test_each_head_learns_its_temperature() -> None:
    kernel = Cosine(Settings(8, 2, 4))
    with torch.no_grad():
        kernel.log_temperature.copy_(torch.tensor([0.0, math.log(3)]))
    one, three = kernel.log_weight(Q.expand(1, 2, 1, 4), K.expand(1, 2, 1, 4)).flatten().tolist()
    assert three == pytest.approx(3 * one)


def test_reduction_is_the_log_weight() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 4, 4), torch.randn(2, 1, 5, 4)
    q, k = KERNEL.dot_product(query, key)
    torch.testing.assert_close(q @ k.transpose(-2, -1) / 2, KERNEL.log_weight(query, key))


def test_a_vector_of_zeros_has_cosine_zero() -> None:
    assert KERNEL.log_weight(torch.zeros_like(Q), K).item() == 0
