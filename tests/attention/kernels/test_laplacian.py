import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels.laplacian import Laplacian

Q, K = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, -7.0, 0.0]]]])
KERNEL = Laplacian(Settings(4, 1, 4))


def test_log_weight_is_the_sum_of_absolute_differences_over_the_root_of_d() -> None:
    assert KERNEL.log_weight(Q, K).item() == pytest.approx(-(2 + 1.5 + 7 + 1) / 2)


def test_gradient_at_distance_zero_is_zero() -> None:
    query = Q.clone().requires_grad_()
    KERNEL.log_weight(query, Q).sum().backward()
    assert (query.grad == 0).all()
