import math

import numpy as np
import pytest
import torch

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.xpos import XPos
from tests.attention.by_hand import attention, check


def compared(features: np.ndarray, position: int, sign: int) -> np.ndarray:
    """Each pair of features turned by its angle and multiplied by ζ^(± position / 512)."""
    width, turned = len(features), np.zeros_like(features)
    for p in range(0, width, 2):
        angle, fold = position / 10000 ** (p / width), ((p / width + 0.4) / 1.4) ** (sign * position / 512)
        turned[p] = fold * (features[p] * math.cos(angle) - features[p + 1] * math.sin(angle))
        turned[p + 1] = fold * (features[p + 1] * math.cos(angle) + features[p] * math.sin(angle))
    return turned


def test_every_path_gives_what_a_loop_over_pairs_gives() -> None:
    module, x = attention(positions=["xpos"], tokens=12)
    check(module, x, lambda q, k, i, j, head: math.exp(compared(q, i, 1) @ compared(k, j, -1) / math.sqrt(len(q))))


def test_products_fall_with_the_distance_alone() -> None:
    scheme, ones = XPos(Settings(8, 1, 4)).double(), torch.ones(1, 1, 1, 4, dtype=torch.float64)

    def product(query: int, key: int) -> torch.Tensor:
        at_query, at_key = (TokenPositions(torch.tensor([where]), None) for where in (query, key))
        q = scheme.query(scheme.projected(ones, at_query), at_query)
        k = scheme.key(scheme.projected(ones, at_key), at_key)
        return q[0, 0] @ k[0, 0].T

    torch.testing.assert_close(product(700, 100), product(600, 0))
    assert product(2000, 2000).item() == pytest.approx(4)


def test_features_that_do_not_turn_do_not_decay() -> None:
    scheme, place = XPos(Settings(8, 1, 4), rotary_share=0.5), TokenPositions(torch.tensor([900]), None)
    x = torch.randn(1, 1, 1, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(scheme.query(x, place)[..., 2:], x[..., 2:])
    assert (scheme.query(x, place)[..., 0] != x[..., 0]).all()
