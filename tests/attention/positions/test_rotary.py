import math

import pytest
import torch

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.rotary import Rotary


def test_each_pair_of_features_turns_by_its_own_angle() -> None:
    scheme = Rotary(Settings(8, heads=1, head_width=4))
    turned = scheme.projected(torch.tensor([[[[1.0, 0.0, 0.0, 2.0]]]]), TokenPositions(torch.tensor([3]), None))
    expected = [math.cos(3), math.sin(3), -2 * math.sin(0.03), 2 * math.cos(0.03)]
    torch.testing.assert_close(turned.flatten(), torch.tensor(expected))


def test_dot_products_see_the_distance_only() -> None:
    torch.manual_seed(0)
    scheme, x = Rotary(Settings(8, 1, 4)).double(), torch.randn(1, 1, 2, 4, dtype=torch.float64)
    products = [
        (lambda t: t[0, 0, 0] @ t[0, 0, 1])(scheme.projected(x, TokenPositions(torch.tensor(where), None)))
        for where in ([0, 4], [10, 14], [-3, 1])
    ]
    torch.testing.assert_close(products[0], products[1])
    torch.testing.assert_close(products[0], products[2])


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="head_width: a rotation turns pairs, not 3; allowed: an even number"):
        Rotary(Settings(9, 3, 3))
