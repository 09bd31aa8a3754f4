import math

import numpy as np
import pytest
import torch

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.rotary import Rotary
from tests.attention.by_hand import HEAD_WIDTH, attention, check


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


def frequency(p: int, width: int, options: dict) -> float:
    """The angle from one position to the next of pair p, as printed in each paper."""
    base, scaling = options.get("rotary_base", 10000.0), options.get("rotary_scaling", "none")
    factor, length = options.get("rotary_factor", 1.0), options.get("original_length", 512)
    if scaling == "ntk":
        base = base * factor ** (width / (width - 2))
    each = base ** (-2 * p / width)
    if scaling == "interpolation":
        return each / factor
    if scaling == "yarn":
        turns = length / (2 * math.pi / each)
        ramp = 0.0 if turns < 1 else 1.0 if turns > 32 else (turns - 1) / 31
        return (1 - ramp) * each / factor + ramp * each
    return each


OPTIONS = [
    {},
    {"rotary_base": 500000.0},
    {"rotary_share": 0.5},
    {"rotary_scaling": "interpolation", "rotary_factor": 4.0},
    {"rotary_scaling": "ntk", "rotary_factor": 4.0},
    {"rotary_scaling": "yarn", "rotary_factor": 4.0, "original_length": 100},
    {"rotary_scaling": "yarn", "rotary_factor": 8.0, "original_length": 3000, "rotary_share": 0.5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_path_gives_what_a_loop_over_pairs_gives(options: dict) -> None:
    module, x = attention(positions=["rotary"], **options)
    width = int(HEAD_WIDTH * options.get("rotary_share", 1.0))
    yarn = options.get("rotary_scaling") == "yarn"
    inverse_temperature = (0.1 * math.log(options["rotary_factor"]) + 1) ** 2 if yarn else 1.0

    def turned(features: np.ndarray, position: int) -> np.ndarray:
        pairs = features[:width:2] + 1j * features[1:width:2]
        angles = np.array([position * frequency(p, width, options) for p in range(width // 2)])
        pairs = pairs * np.exp(1j * angles)
        return np.concatenate([np.stack([pairs.real, pairs.imag], -1).ravel(), features[width:]])

    check(
        module,
        x,
        lambda q, k, i, j, head: math.exp(inverse_temperature * turned(q, i) @ turned(k, j) / math.sqrt(HEAD_WIDTH)),
    )


def test_yarn_leaves_fast_pairs_alone_and_interpolates_slow_ones() -> None:
    plain, yarn = (
        Rotary(Settings(64, 1, 64), **options).double().sinusoid.frequencies(torch.device("cpu"))
        for options in ({}, {"rotary_scaling": "yarn", "rotary_factor": 8.0, "original_length": 4096})
    )
    turns = 4096 * plain / (2 * math.pi)
    assert (turns > 32).any() and (turns < 1).any()
    assert torch.equal(yarn[turns > 32], plain[turns > 32])
    torch.testing.assert_close(yarn[turns < 1], plain[turns < 1] / 8)


@pytest.mark.parametrize("share", [0.3, 0.25, 1.0 / 3])
def test_a_share_that_is_no_even_number_of_features_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"rotary_share: .* features is .*; allowed: an even number of them"):
        Rotary(Settings(8, 2, 4), rotary_share=share)
