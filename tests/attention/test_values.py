"""Each value function is its formula."""

import numpy as np
import pytest
import torch

from kdx.attention import KernelAttention
from tests.attention import by_hand

# rotary


def turned(vector: np.ndarray, distance: int) -> np.ndarray:
    pairs = vector.reshape(-1, 2)
    angles = distance * 10000.0 ** (-2 * np.arange(len(pairs)) / len(vector))
    even = pairs[:, 0] * np.cos(angles) - pairs[:, 1] * np.sin(angles)
    odd = pairs[:, 1] * np.cos(angles) + pairs[:, 0] * np.sin(angles)
    return np.stack([even, odd], -1).reshape(-1)


@pytest.mark.parametrize("choices", [{}, {"positions": ["rotary"], "kv_heads": 1}, {"kernel": "linear"}], ids=str)
def test_rotary_values_turn_by_the_distance_token_by_token(choices: dict) -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, value="rotary", filter="causal", **choices).double()
    x = by_hand.draw(300, 8)
    values = by_hand.heads(module.value, x, 4)
    weights = module.weights(x[None])[0].detach().numpy()
    expected = np.zeros((2, 300, 4))
    for head, query in np.ndindex(2, 300):
        own = values[head % len(values)]
        expected[head, query] = sum(
            weights[head, query, key] * turned(own[key], key - query) for key in range(query + 1)
        )
    by_hand.same(module, x, expected)


def test_rotary_values_do_not_change_when_all_positions_move() -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, value="rotary", positions=["rotary"]).double()
    x, at = by_hand.draw(1, 6, 8), torch.arange(6)
    torch.testing.assert_close(module(x, query_positions=at), module(x, query_positions=at + 1000), rtol=0, atol=1e-9)
