import pytest
import torch

from kdx.attention import KernelAttention
from kdx.attention.interfaces import Settings
from kdx.attention.kernels.relu_squared import ReLUSquared

Q, K = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, -7.0, 0.0]]]])
KERNEL = ReLUSquared(Settings(4, 1, 4))


def test_weight_is_the_square_of_a_positive_dot_product() -> None:
    assert KERNEL.weight(Q, K).item() == pytest.approx((4 / 2) ** 2)
    assert KERNEL.weight(-Q, K).item() == 0


def test_it_is_divided_by_the_number_of_keys_seen() -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, kernel="relu-squared", filter="causal")
    x = torch.randn(1, 4, 8)
    weights, by_sum = module.weights(x), KernelAttention(8, 2, kernel="relu-squared", normaliser="row-sum")
    query, key = (linear(x).view(1, 4, 2, 4).transpose(1, 2) for linear in (module.query, module.key))
    raw = KERNEL.weight(query, key).tril()
    torch.testing.assert_close(weights, raw / torch.arange(1, 5).view(4, 1))
    by_sum.load_state_dict(module.state_dict())
    total = by_sum.weights(x).sum(-1)
    torch.testing.assert_close(total, (total > 0).float())
