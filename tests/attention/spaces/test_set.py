import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.attention.spaces.set import SetAttention
from tests.attention.by_hand import draw


@settings(deadline=None)  # a busy machine is no fault
@given(order=st.permutations(range(5)), kernel=st.sampled_from(["exponential", "rbf"]))
def test_permuting_elements_permutes_the_output(order: list[int], kernel: str) -> None:
    torch.manual_seed(0)
    attention, x = SetAttention(8, 2, kernel=kernel).double(), draw(2, 5, 8)
    for attention.path in ("fused", "literal"):
        torch.testing.assert_close(attention(x[:, order]), attention(x)[:, order], rtol=1e-10, atol=1e-10)


def test_positions_that_are_given_change_nothing() -> None:
    attention, x = SetAttention(8, 2).double(), draw(1, 4, 8)
    torch.testing.assert_close(attention(x, query_positions=torch.tensor([7, 1, 3, 9])), attention(x))


@pytest.mark.parametrize("word", ["positions", "filter", "value"])
def test_no_word_brings_an_order_in(word: str) -> None:
    with pytest.raises(TypeError):
        SetAttention(8, 2, **{word: "causal"})
