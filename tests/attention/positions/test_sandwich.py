import math

import numpy as np
import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.positions.sandwich import Sandwich
from tests.attention.by_hand import HEADS, attention, check, exponential


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


def test_the_first_heads_fall_steepest_and_nothing_is_learned_or_stored() -> None:
    scheme = Sandwich(Settings(8, 4, 2))
    near, far = scheme.bias(torch.tensor([0, -40])).unbind(-1)
    assert (near - far).diff().lt(0).all() and (near > far).all()
    assert not scheme.state_dict()
