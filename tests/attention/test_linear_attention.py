"""Sums over the keys give what a weight of each pair gives, with its gradient."""

from unittest.mock import patch

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import linear_attention as module
from kdx.attention import smoother
from kdx.attention.interfaces import Settings
from kdx.attention.linear_attention import linear_attention
from kdx.attention.normalisers.row_sum import RowSum
from tests.attention.by_hand import draw

ROW_SUM = RowSum(Settings(4, 3, 4))


def in_pairs(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> Tensor:
    visible = torch.ones(query.size(2), key.size(2), dtype=torch.bool)
    weight = query @ key.transpose(-2, -1)
    return smoother.literal(None, weight, ROW_SUM, value, visible=visible.tril() if causal else visible)


@settings(deadline=None)
@given(tokens=st.integers(1, 9), chunk=st.integers(1, 5), causal=st.booleans())
def test_sums_over_keys_are_those_of_pairs(tokens: int, chunk: int, causal: bool) -> None:
    query, key = draw(2, 3, tokens, 4).exp(), draw(2, 3, tokens, 4, seed=1).exp()
    key[1, :, tokens // 2] = 0  # a key that must not be seen
    rows = [query, key, draw(2, 3, tokens, 2, seed=2)]
    output, *gradients = _with_gradients(lambda *rows: in_pairs(*rows, causal), rows)
    with patch.object(module, "CHUNK", chunk):
        result, *found_gradients = _with_gradients(lambda *rows: linear_attention(*rows, causal=causal), rows)
    torch.testing.assert_close(result, output)
    torch.testing.assert_close(found_gradients, gradients)


def test_a_query_without_any_key_gets_zeros_of_sums_too() -> None:
    query, nothing = draw(1, 1, 3, 4), torch.zeros(1, 1, 3, 4, dtype=torch.float64)
    assert not linear_attention(query, nothing, draw(1, 1, 3, 2), causal=True).any()


def test_what_comes_later_never_reaches_a_query_not_even_as_no_number() -> None:
    query, key, value = (draw(1, 1, 3, 2, seed=seed).exp() for seed in range(3))
    key[..., 2, :] = torch.nan
    assert linear_attention(query, key, value, causal=True)[..., :2, :].isfinite().all()


def _with_gradients(smooth, rows: list[Tensor]) -> list[Tensor]:  # type: ignore[no-untyped-def]
    leaves = [row.clone().requires_grad_() for row in rows]
    output = smooth(*leaves)
    output.mul(draw(*output.shape, seed=3)).sum().backward()
    return [output.detach(), *(leaf.grad for leaf in leaves)]
