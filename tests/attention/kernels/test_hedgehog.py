import numpy as np
import pytest
import torch

from kdx.attention.interfaces import Settings, Side
from kdx.attention.kernels.hedgehog import Hedgehog
from tests.attention.by_hand import HEAD_WIDTH, HEADS, attention, check


@pytest.mark.parametrize("tokens", [7, 140])
def test_every_path_gives_what_a_loop_over_pairs_gives(tokens: int) -> None:
    module, x = attention(kernel="hedgehog", tokens=tokens)
    maps = module.kernel.map.detach().numpy()
    biases = module.kernel.bias.detach().numpy().reshape(HEADS, HEAD_WIDTH)

    def weigh(q, k, i, j, head):
        query, key = (maps[head] @ features + biases[head] for features in (q, k))
        return np.exp(query) @ np.exp(key) + np.exp(-query) @ np.exp(-key)

    check(module, x, weigh)


def test_the_map_begins_as_the_identity() -> None:
    kernel, x = Hedgehog(Settings(8, 2, 4)), torch.randn(1, 2, 3, 4)
    torch.testing.assert_close(kernel.exponents(x), torch.cat([x, -x], -1))


def test_a_factor_of_all_keys_is_left_out_and_one_of_each_query() -> None:
    torch.manual_seed(0)
    kernel, x = Hedgehog(Settings(8, 2, 4)).double(), torch.randn(1, 2, 3, 4, dtype=torch.float64)
    exact = kernel.exponents(x).exp()
    of_query, of_key = (exact / kernel.feature_map(x, side) for side in (Side.QUERY, Side.KEY))
    torch.testing.assert_close(of_query, of_query[..., :1].expand_as(of_query))
    torch.testing.assert_close(of_key, of_key[..., :1, :1].expand_as(of_key))
    assert not torch.allclose(of_query[:, :, :1], of_query)


def test_the_map_learns_on_the_path_without_pairs() -> None:
    found = []
    module, x = attention(kernel="hedgehog", tokens=140)
    for module.path in ("fused", "literal"):
        module.zero_grad()
        module(x).square().sum().backward()
        found.append([module.kernel.map.grad.clone(), module.kernel.bias.grad.clone()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
        assert one.any()
