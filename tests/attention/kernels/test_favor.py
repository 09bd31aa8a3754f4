import math

import numpy as np
import pytest
import torch

from kdx.attention import KernelAttention
from kdx.attention.interfaces import Settings
from kdx.attention.kernels.favor import FAVOR
from tests.attention.by_hand import HEADS, WIDTH, attention, check


def features(x: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """One at a time, as printed."""
    scaled = x / len(x) ** 0.25
    return np.array([math.exp(w @ scaled - scaled @ scaled / 2) for w in directions]) / math.sqrt(len(directions))


@pytest.mark.parametrize("tokens", [7, 140])
def test_every_path_gives_what_a_loop_over_pairs_gives(tokens: int) -> None:
    module, x = attention(kernel="favor", random_features=6, tokens=tokens)
    directions = module.kernel.directions.numpy()
    check(module, x, lambda q, k, i, j, head: features(q, directions[head]) @ features(k, directions[head]))


def test_it_estimates_the_exponential_kernel_without_bias() -> None:
    torch.manual_seed(0)
    q, k = torch.randn(1, 2000, 1, 8, dtype=torch.float64), torch.randn(1, 2000, 1, 8, dtype=torch.float64)
    q, k = q[:, :1].expand_as(q), k[:, :1].expand_as(k)
    kernel = FAVOR(Settings(8 * 2000, 2000, 8), random_features=16).double()
    found = (kernel.log_weight(q, k).exp() * kernel.weight(q, k)).flatten()
    exact = math.exp(float(q[0, 0, 0] @ k[0, 0, 0]) / math.sqrt(8))
    assert abs(found.mean() - exact) < 4 * found.std() / math.sqrt(2000)


def test_directions_of_a_block_are_orthogonal_and_as_long_as_normal_vectors() -> None:
    torch.manual_seed(0)
    directions = FAVOR(Settings(16, 2, 8), random_features=20).directions
    assert directions.shape == (2, 20, 8)
    for head in directions:
        for block in head.split(8):
            gram = block @ block.T
            torch.testing.assert_close(gram, gram.diagonal().diag(), atol=1e-5, rtol=0)
    lengths = FAVOR(Settings(16, 2, 8), random_features=4000).directions.norm(dim=-1)
    assert lengths.square().mean().item() == pytest.approx(8, rel=0.05) and lengths.std() > 0.5


def test_directions_are_no_parameters_and_come_back_from_a_checkpoint() -> None:
    one, other = (KernelAttention(WIDTH, HEADS, kernel="favor", random_features=5) for _ in range(2))
    assert not list(one.kernel.parameters()) and not torch.equal(one.kernel.directions, other.kernel.directions)
    other.load_state_dict(one.state_dict())
    x = torch.randn(1, 5, WIDTH)
    assert torch.equal(one(x), other(x))


def test_long_vectors_give_weights_that_are_numbers_on_every_path() -> None:
    module, x = attention(kernel="favor", random_features=6, tokens=150)
    module, x = module.float(), 6 * x.float()
    for module.path in ("literal", "fused"):
        assert module(x).isfinite().all()
    assert (module.weights(x).sum(-1) - 1).abs().max() < 1e-5
