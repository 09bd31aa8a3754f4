import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels.linear import Linear

Q, K = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, -7.0, 0.0]]]])
KERNEL = Linear(Settings(4, 1, 4))


def test_weight_is_the_dot_product_with_its_sign() -> None:
    assert KERNEL.weight(Q, K).item() == 4.0
    assert KERNEL.weight(-Q, K).item() == -4.0
    assert KERNEL.log_weight(Q, K) is None
