import math

import numpy as np
import pytest
import torch

from kdx.attention import KernelAttention
from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions import sandwich
from kdx.attention.positions.sandwich import Sandwich
from tests.attention.by_hand import HEADS, attention, check, exponential
from tests.attention.largest_tensor import LargestTensor


def bias(i: int, j: int, head: int, cosines: int) -> float:
    """The product of two sinusoids, term by term, over 8h/H."""
    total = 0.0
    for p in range(cosines):
        a, b = i / 10000 ** (p / cosines), j / 10000 ** (p / cosines)
        total += math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b)
    return total * HEADS / (8 * (head + 1))


@pytest.mark.parametrize("filter", ["causal", "full"])
def test_every_path_gives_what_a_loop_over_pairs_gives(filter: str) -> None:
    module, x = attention(positions=["sandwich"], filter=filter, frequencies=3)
    check(
        module,
        x,
        lambda q, k, i, j, head: exponential(q, k) * np.exp(bias(i, j, head, 3)),
        later=filter == "full",
    )


def test_columns_are_the_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandwich, "LARGEST_BIAS", 0)
    scheme = Sandwich(Settings(6, 3, 2), frequencies=5).double()
    places = [TokenPositions(torch.arange(*ends), None, ends[0]) for ends in ((3, 6), (0, 9))]
    query = torch.zeros(1, 3, 3, 2, dtype=torch.float64)
    columns = scheme.dot_product(query, *places, past=False)
    assert columns is not None
    q, k = columns
    torch.testing.assert_close(q @ k.transpose(-2, -1) / math.sqrt(2), scheme.log_weight(query, *places))


def test_the_first_heads_fall_steepest_and_nothing_is_learned_or_stored() -> None:
    scheme = Sandwich(Settings(8, 4, 2))
    near, far = scheme.bias(torch.tensor([0, -40])).unbind(-1)
    assert (near - far).diff().lt(0).all() and (near > far).all()
    assert not scheme.state_dict()


@torch.no_grad()
def test_a_long_row_takes_columns_and_gives_what_the_literal_path_gives() -> None:
    x = torch.randn(1, 2100, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    module = KernelAttention(4, 1, positions=["sandwich"], filter="causal", frequencies=2).double()
    with LargestTensor() as made:
        fused = module.smooth(x)
    assert made.numbers < 2100 * 100
    module.path = "literal"
    torch.testing.assert_close(fused, module.smooth(x), rtol=1e-10, atol=1e-10)
