import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import smoother


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def definition(weight: Tensor, visible: Tensor, value: Tensor) -> Tensor:
    """Eq. 2, pair by pair: raw weights (Tq, Tk), visible (Tq, Tk), values (Tk, D)."""
    rows = []
    for q in range(len(weight)):
        total = sum(weight[q, k].item() for k in range(len(value)) if visible[q, k])
        row = torch.zeros(value.size(1), dtype=torch.float64)
        for k in range(len(value)):
            if visible[q, k]:
                row += weight[q, k].item() / total * value[k]
        rows.append(row)
    return torch.stack(rows)


@settings(deadline=None)  # a busy machine is no fault
@given(
    scores=st.lists(st.lists(st.floats(-30, 30), min_size=3, max_size=3), min_size=1, max_size=4),
    hidden=st.integers(0, 2),
    sign=st.sampled_from([1.0, -1.0]),
)
def test_literal_is_the_definition(scores: list[list[float]], hidden: int, sign: float) -> None:
    log_weight, value = torch.tensor(scores, dtype=torch.float64), draw(3, 2)
    visible = torch.ones_like(log_weight, dtype=torch.bool)
    visible[:, hidden] = False
    signs = torch.tensor([sign, 1.0, 1.0], dtype=torch.float64).expand_as(log_weight)
    total = (log_weight.exp() * signs * visible).sum(-1)
    assume((total.abs() > 1e-3 * log_weight.exp().amax(-1)).all())
    expected = definition(log_weight.exp() * signs, visible, value)
    output = smoother.literal(log_weight[None, None], value[None, None], visible=visible, sign=signs[None, None])
    # A signed row sum may nearly cancel; rounding then counts by the row's condition number.
    condition = (smoother.weights(log_weight[None, None], visible, signs[None, None])[0, 0]).abs().sum(-1, keepdim=True)
    assert ((output[0, 0] - expected).abs() <= 1e-10 * condition.clamp(min=1)).all()


def test_weights_stand_log_weights_of_any_size() -> None:
    log_weight = torch.tensor([[[[1000.0, 999.0], [-1000.0, -1001.0]]]])
    expected = torch.tensor([1 / (1 + math.exp(-1)), 1 / (1 + math.e)]).expand(1, 1, 2, 2)
    torch.testing.assert_close(smoother.weights(log_weight), expected)


def test_weights_are_normalised_in_32_bits() -> None:
    assert smoother.weights(torch.zeros(1, 1, 2, 3, dtype=torch.bfloat16)).dtype is torch.float32


def test_a_key_with_weight_zero_everywhere_is_not_an_epsilon() -> None:
    log_weight = torch.tensor([[[[0.0, -torch.inf]]]])
    assert smoother.weights(log_weight).tolist() == [[[[1.0, 0.0]]]]


def test_fused_adds_dot_products_and_bias() -> None:
    (q, k), (s, t), value = (
        (draw(2, 3, 4, 5), draw(2, 3, 6, 5, seed=1)),
        (draw(3, 4, 2, seed=2), draw(3, 6, 2)),
        draw(2, 3, 6, 5),
    )
    bias, visible = draw(3, 4, 6, seed=4), torch.ones(4, 6, dtype=torch.bool).tril()
    log_weight = (q @ k.transpose(-2, -1) + s @ t.transpose(-2, -1)) / math.sqrt(5) + bias
    torch.testing.assert_close(
        smoother.fused([(q, k), (s, t)], value, bias=bias, visible=visible),
        smoother.literal(log_weight, value, visible=visible),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("path", ["literal", "fused"])
def test_dropout_falls_on_weights_and_keeps_their_mean(path: str) -> None:
    torch.manual_seed(0)
    log_weight, value = torch.zeros(1, 1, 2000, 4), torch.ones(1, 1, 4, 1)
    if path == "literal":
        output = smoother.literal(log_weight, value, dropout=0.5)
    else:
        output = smoother.fused([(torch.zeros(1, 1, 2000, 1), torch.zeros(1, 1, 4, 1))], value, dropout=0.5)
    assert set(output.unique().tolist()) == {0.0, 0.5, 1.0, 1.5, 2.0}
    assert output.mean().item() == pytest.approx(1, abs=0.05)
