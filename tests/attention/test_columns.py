import math

import pytest
import torch

from kdx.attention import columns


@pytest.mark.parametrize(
    ("dtype", "count", "error"),
    [(torch.float64, 1, 1e-12), (torch.float32, 1, 1e-3), (torch.bfloat16, 3, 1e-3), (torch.float16, 3, 1e-3)],
    ids=str,
)
def test_the_product_over_the_root_of_d_is_the_log_weight_in_every_format(
    dtype: torch.dtype, count: int, error: float
) -> None:
    log_weight = -torch.linspace(0, 3000, 2 * 50, dtype=torch.float64).view(2, 50)
    log_weight = log_weight if dtype is torch.float64 else log_weight.float()
    q, k = columns.of_keys(log_weight, torch.zeros(1, 2, 4, 8, dtype=dtype))
    assert q.dtype is k.dtype is dtype and q.shape == (1, 4, count) and k.shape == (2, 50, count)
    result = q.double() @ k.double().transpose(-2, -1) / math.sqrt(8)
    assert (result - log_weight.double().unsqueeze(-2)).abs().max() < error
