"""What every context mixer promises, so that one may stand in another's place; and each is its formula."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from kdx.attention import Cache, KernelAttention
from kdx.attention.mixers import MIXERS
from kdx.attention.mixers.convolution import Convolution
from kdx.attention.mixers.equivariant import Equivariant
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


@pytest.mark.parametrize("mixer", ["equivariant", "convolution"])
def test_a_cache_without_a_causal_filter_is_refused(mixer: str) -> None:
    with pytest.raises(ValueError, match="cache: given to a layer that also looks ahead; allowed: with filter causal"):
        mixer_of(mixer, "full")(draw(1, 2, WIDTH), cache=Cache())


@pytest.mark.parametrize("mixer", ["equivariant", "convolution"])
@pytest.mark.parametrize("filter", ["strided", "past"])
def test_another_filter_is_refused(mixer: str, filter: str) -> None:
    with pytest.raises(ValueError, match=f"filter: '{filter}'; allowed for a [a-z]+: full, causal"):
        mixer_of(mixer, filter)


# convolution


def convolved(layer: Convolution, row: Tensor, hidden: list[bool], neighbours: int, causal: bool) -> Tensor:
    """The formula, token by token."""
    outputs = []
    for i in range(len(row)):
        total = torch.zeros_like(row[0])
        for j in range(-neighbours, 1 if causal else neighbours + 1):
            if 0 <= i + j < len(row) and not hidden[i + j]:
                total = total + row[i + j] @ layer.kernel.weight[:, :, neighbours + j].T
        outputs.append(total)
    return torch.stack(outputs)


@settings(deadline=None)  # a busy machine is no fault
@given(hidden=st.lists(st.booleans(), min_size=1, max_size=7), neighbours=st.integers(0, 8), causal=st.booleans())
def test_each_neighbour_has_its_matrix(hidden: list[bool], neighbours: int, causal: bool) -> None:
    layer = Convolution(3, neighbours=neighbours, filter="causal" if causal else "full").double()
    x = draw(1, len(hidden), 3)
    close(layer(x, key_padding=torch.tensor([hidden]))[0], convolved(layer, x[0], hidden, neighbours, causal))


# equivariant


def averaged(layer: Equivariant, row: Tensor, hidden: list[bool], causal: bool) -> Tensor:
    """The formula, token by token."""
    outputs = []
    for i in range(len(row)):
        mean, count = torch.zeros_like(row[0]), 0
        for j in range(i + 1 if causal else len(row)):
            if not hidden[j]:
                mean, count = mean + row[j], count + 1
        outputs.append(layer.own.weight @ row[i] + layer.others.weight @ (mean / max(count, 1)))
    return torch.stack(outputs)


@settings(deadline=None)  # a busy machine is no fault
@given(hidden=st.lists(st.booleans(), min_size=1, max_size=7), causal=st.booleans())
def test_each_token_is_told_the_mean_of_those_it_sees(hidden: list[bool], causal: bool) -> None:
    layer = Equivariant(3, filter="causal" if causal else "full").double()
    x = draw(1, len(hidden), 3)
    close(layer(x, key_padding=torch.tensor([hidden]))[0], averaged(layer, x[0], hidden, causal))


def test_a_running_mean_keeps_its_digits_in_half_precision() -> None:
    layer = Equivariant(1, filter="causal").bfloat16()
    with torch.no_grad():
        layer.own.weight.zero_()
        layer.others.weight.fill_(1.0)
    output = layer(torch.ones(1, 5000, 1, dtype=torch.bfloat16))
    assert output.dtype is torch.bfloat16
    assert output[0, -1].item() == pytest.approx(1.0)
