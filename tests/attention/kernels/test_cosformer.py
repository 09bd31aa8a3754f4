import math

import numpy as np
import pytest
import torch

from kdx.attention import KernelAttention
from kdx.attention.spaces.image import ImageAttention
from kdx.attention.spaces.multimodal import MultimodalAttention
from kdx.attention.spaces.set import SetAttention
from tests.attention.by_hand import attention, check


@pytest.mark.parametrize("filter", ["causal", "full"])
@pytest.mark.parametrize("tokens", [7, 140])
def test_every_path_gives_what_a_loop_over_pairs_gives(tokens: int, filter: str) -> None:
    module, x = attention(kernel="cosformer", tokens=tokens, horizon=200, filter=filter)
    with torch.no_grad():
        module.query.bias.fill_(1.0)
        module.key.bias.fill_(1.0)  # so that a query finds a key alike

    def weigh(q, k, i, j, head):
        return np.maximum(q, 0) @ np.maximum(k, 0) * math.cos(math.pi / 2 * (i - j) / 200)

    check(module, x, weigh, later=filter == "full")


def test_a_position_beyond_the_horizon_is_refused() -> None:
    module = KernelAttention(8, 2, kernel="cosformer", horizon=4)
    assert module(torch.zeros(1, 5, 8)).isfinite().all()
    with pytest.raises(ValueError, match="positions: 5 is beyond the horizon; allowed: 0 to 4"):
        module(torch.zeros(1, 6, 8))


def test_a_space_without_places_in_a_sequence_refuses_it() -> None:
    for make in (
        lambda: SetAttention(8, 2, kernel="cosformer"),
        lambda: ImageAttention(8, 2, columns=3, kernel="cosformer"),
        lambda: MultimodalAttention([8, 8], 2, kernel="cosformer"),
    ):
        with pytest.raises(
            ValueError, match=r"kernel: cosformer weighs by places in a sequence; allowed here: linear, "
        ):
            make()
