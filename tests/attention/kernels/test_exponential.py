import math

import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels.exponential import Exponential


def test_weight_is_the_exponential_of_the_scaled_dot_product() -> None:
    query, key = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, 7.0, 0.0]]]])
    assert Exponential(Settings(4, 1, 4)).log_weight(query, key).item() == pytest.approx((3 + 1) / math.sqrt(4))


def test_at_half_the_temperature_the_logarithm_is_twice_as_large() -> None:
    query, key = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, 7.0, 0.0]]]])
    kernel = Exponential(Settings(4, 1, 4), temperature=0.5)
    assert kernel.log_weight(query, key).item() == pytest.approx(2 * (3 + 1) / math.sqrt(4))
    q, k = kernel.dot_product(query, key)
    assert (q @ k.transpose(-2, -1)).item() / math.sqrt(4) == pytest.approx(2 * (3 + 1) / math.sqrt(4))


def test_reduction_is_query_and_key_themselves() -> None:
    query, key = torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 2, 3)
    reduced = Exponential(Settings(4, 1, 4)).dot_product(query, key)
    assert reduced[0] is query
    assert reduced[1] is key
