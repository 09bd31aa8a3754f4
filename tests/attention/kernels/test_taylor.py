import math

import pytest
import torch

from kdx.attention.interfaces import Settings, Side
from kdx.attention.kernels.taylor import Taylor
from tests.attention.by_hand import attention, check


@pytest.mark.parametrize("tokens", [7, 140])
def test_every_path_gives_what_a_loop_over_pairs_gives(tokens: int) -> None:
    module, x = attention(kernel="taylor", tokens=tokens)

    def weigh(q, k, i, j, head):
        s = q @ k / math.sqrt(len(q))
        return sum(s**n / math.factorial(n) for n in range(3))

    check(module, x, weigh)


def test_the_feature_map_has_one_feature_for_each_product() -> None:
    kernel, q = Taylor(Settings(8, 1, 8)), torch.randn(1, 1, 3, 8, dtype=torch.float64)
    k = torch.randn(1, 1, 5, 8, dtype=torch.float64)
    of_query, of_key = kernel.feature_map(q, Side.QUERY), kernel.feature_map(k, Side.KEY)
    assert of_query.size(-1) == 1 + 8 + 36
    torch.testing.assert_close(of_query @ of_key.transpose(-2, -1), kernel.weight(q, k))


def test_it_is_positive_and_near_the_exponential_where_the_product_is_small() -> None:
    kernel, q = Taylor(Settings(4, 1, 4)), torch.randn(1, 1, 50, 4, dtype=torch.float64)
    assert (kernel.weight(5 * q, q) >= 0.5).all()
    exact = (0.1 * q @ q.transpose(-2, -1) / 2).exp()
    third = (0.1 * q @ q.transpose(-2, -1) / 2).abs().pow(3)
    assert ((kernel.weight(0.1 * q, q) - exact).abs() <= third).all()
