import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels.polynomial import Polynomial

Q, K = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, -7.0, 0.0]]]])
KERNEL = Polynomial(Settings(4, 1, 4))


def test_weight_is_the_square_of_the_dot_product() -> None:
    assert KERNEL.weight(Q, K).item() == 16.0
    assert KERNEL.weight(-Q, K).item() == 16.0


def test_gradient_where_a_query_meets_a_key_at_a_right_angle_is_zero() -> None:
    query = torch.tensor([[[[1.0, 0.0]]]], requires_grad=True)
    KERNEL.weight(query, torch.tensor([[[[0.0, 1.0]]]])).sum().backward()
    assert (query.grad == 0).all()
