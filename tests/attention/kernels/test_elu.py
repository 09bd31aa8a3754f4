import math

import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels.elu import ELU

Q, K = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, -7.0, 0.0]]]])
KERNEL = ELU(Settings(4, 1, 4))


def test_weight_is_the_dot_product_of_positive_features() -> None:
    expected = 2 * 4 + 3 * 1.5 + 1 * math.exp(-7) + 2 * 1
    assert KERNEL.weight(Q, K).item() == pytest.approx(expected)
    assert (KERNEL.weight(-9 * Q, K) > 0).all()
