import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention.mixers.equivariant import Equivariant
from tests.attention.by_hand import close, draw


def expected(layer: Equivariant, row: Tensor, hidden: list[bool], causal: bool) -> Tensor:
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
    close(layer(x, key_padding=torch.tensor([hidden]))[0], expected(layer, x[0], hidden, causal))


@settings(deadline=None)
@given(st.permutations(range(6)))
def test_permuting_tokens_permutes_the_output(order: list[int]) -> None:
    layer, x = Equivariant(4).double(), draw(2, 6, 4)
    close(layer(x[:, order]), layer(x)[:, order])


def test_the_causal_form_sees_the_order_but_not_that_of_the_prefix() -> None:
    layer, x, order = Equivariant(4, filter="causal").double(), draw(1, 5, 4), torch.tensor([2, 0, 3, 1, 4])
    assert not torch.allclose(layer(x[:, order]), layer(x)[:, order])
    close(layer(x[:, order])[:, -1], layer(x)[:, -1])


def test_it_has_two_matrices_and_no_bias() -> None:
    assert {name: tuple(p.shape) for name, p in Equivariant(4).named_parameters()} == {
        "own.weight": (4, 4),
        "others.weight": (4, 4),
    }


def test_a_running_mean_keeps_its_digits_in_half_precision() -> None:
    layer = Equivariant(1, filter="causal").bfloat16()
    with torch.no_grad():
        layer.own.weight.zero_()
        layer.others.weight.fill_(1.0)
    output = layer(torch.ones(1, 5000, 1, dtype=torch.bfloat16))
    assert output.dtype is torch.bfloat16
    assert output[0, -1].item() == pytest.approx(1.0)
