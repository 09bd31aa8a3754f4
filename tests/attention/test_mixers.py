"""What every context mixer promises, so that one may stand in another's place."""

import pytest
import torch
from torch import nn

from kdx.attention import Cache, KernelAttention
from kdx.attention.mixers import MIXERS
from tests.attention.by_hand import close, draw

WIDTH = 6


def mixer_of(mixer: str, filter: str) -> nn.Module:
    torch.manual_seed(0)
    if mixer == "attention":
        return KernelAttention(WIDTH, 2, filter=filter).double()
    own = {"neighbours": 2} if mixer == "convolution" else {}
    return MIXERS[mixer](WIDTH, filter=filter, **own).double()


every_mixer = pytest.mark.parametrize("mixer", MIXERS)
either_filter = pytest.mark.parametrize("filter", ["full", "causal"])


@every_mixer
@either_filter
def test_padding_on_either_side_changes_nothing(mixer: str, filter: str) -> None:
    layer, x, junk = mixer_of(mixer, filter), draw(2, 4, WIDTH), torch.full((2, 3, WIDTH), 1e3, dtype=torch.float64)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    right = layer(torch.cat([x, junk], 1), key_padding=padding.index_fill(1, torch.arange(4, 7), True))
    left = layer(torch.cat([junk, x], 1), key_padding=padding.index_fill(1, torch.arange(3), True))
    close(right[:, :4], layer(x))
    close(left[:, 3:], layer(x))


@every_mixer
@either_filter
def test_a_row_of_padding_gives_no_nan(mixer: str, filter: str) -> None:
    layer, x = mixer_of(mixer, filter), draw(2, 3, WIDTH).requires_grad_()
    output = layer(x, key_padding=torch.tensor([[True] * 3, [False] * 3]))
    output.sum().backward()
    assert output.isfinite().all()
    assert x.grad.isfinite().all()


@every_mixer
def test_a_causal_layer_sees_nothing_that_comes_later(mixer: str) -> None:
    layer, x = mixer_of(mixer, "causal"), draw(1, 6, WIDTH)
    changed = torch.cat([x[:, :4], draw(1, 2, WIDTH, seed=1)], 1)
    close(layer(changed)[:, :4], layer(x)[:, :4])
    assert not torch.allclose(layer(changed)[:, 4:], layer(x)[:, 4:])


@every_mixer
@pytest.mark.parametrize("steps", [(1, 1, 1, 1, 1, 1), (3, 1, 2), (1, 5)], ids=str)
def test_decoding_with_a_cache_equals_one_pass(mixer: str, steps: tuple[int, ...]) -> None:
    layer, x = mixer_of(mixer, "causal"), draw(3, 6, WIDTH)
    padding = torch.tensor(
        [[False] * 6, [True, True, True, True, False, False], [False, True, False, False, False, True]]
    )
    for hidden in (None, padding):
        cache = Cache()
        parts = [None] * len(steps) if hidden is None else hidden.split(steps, 1)
        decoded = [
            layer(part, key_padding=now, cache=cache) for part, now in zip(x.split(steps, 1), parts, strict=True)
        ]
        close(torch.cat(decoded, 1), layer(x, key_padding=hidden))


@every_mixer
def test_selected_rows_go_on_as_if_they_had_been_alone(mixer: str) -> None:
    layer, x, kept = mixer_of(mixer, "causal"), draw(3, 5, WIDTH), torch.tensor([2, 0, 2])
    cache = Cache()
    layer(x[:, :3], cache=cache)
    cache.select(kept)
    close(layer(x[kept, 3:], query_positions=torch.tensor([3, 4]), cache=cache), layer(x)[kept, 3:])


@every_mixer
@either_filter
def test_gradients_are_those_of_the_function(mixer: str, filter: str) -> None:
    layer, padding = mixer_of(mixer, filter), torch.tensor([[False, False, False, True]])
    x = draw(1, 4, WIDTH).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, key_padding=padding), (x,), fast_mode=True)


@every_mixer
@either_filter
def test_bf16_autocast_stays_near_float32(mixer: str, filter: str) -> None:
    layer, x = mixer_of(mixer, filter).float(), draw(2, 300, WIDTH).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = layer(x)
    torch.testing.assert_close(output.float(), layer(x), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("mixer", ["equivariant", "convolution"])
def test_a_cache_without_a_causal_filter_is_refused(mixer: str) -> None:
    with pytest.raises(ValueError, match="cache: given to a layer that also looks ahead; allowed: with filter causal"):
        mixer_of(mixer, "full")(draw(1, 2, WIDTH), cache=Cache())


@pytest.mark.parametrize("mixer", ["equivariant", "convolution"])
@pytest.mark.parametrize("filter", ["strided", "past"])
def test_another_filter_is_refused(mixer: str, filter: str) -> None:
    with pytest.raises(ValueError, match=f"filter: '{filter}'; allowed for a [a-z]+: full, causal"):
        mixer_of(mixer, filter)
