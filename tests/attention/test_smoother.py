import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import smoother
from kdx.attention.interfaces import NormaliserFunction, Settings
from kdx.attention.normalisers.length import Length
from kdx.attention.normalisers.row_sum import RowSum
from tests.attention.by_hand import draw

SETTINGS = Settings(4, 1, 4)


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
    path=st.sampled_from([smoother.literal, smoother.quick]),
)
def test_paths_are_the_definition(scores: list[list[float]], hidden: int, sign: float, path: Callable) -> None:
    log_weight, value = torch.tensor(scores, dtype=torch.float64), draw(3, 2)
    visible = torch.ones_like(log_weight, dtype=torch.bool)
    visible[:, hidden] = False
    signs = torch.tensor([sign, 1.0, 1.0], dtype=torch.float64).expand_as(log_weight)
    total = (log_weight.exp() * signs * visible).sum(-1)
    assume((total.abs() > 1e-3 * log_weight.exp().amax(-1)).all())
    expected = definition(log_weight.exp() * signs, visible, value)
    output = path(log_weight[None, None], signs[None, None], RowSum(SETTINGS), value[None, None], visible=visible)
    # A signed row sum may nearly cancel; rounding then counts by the square of what is lost.
    weights = smoother.weights(log_weight[None, None], signs[None, None], RowSum(SETTINGS), visible)[0, 0]
    allowed = 1e-12 * weights.abs().sum(-1, keepdim=True).clamp(min=1).square()
    assert ((output[0, 0] - expected).abs() <= allowed).all()


@pytest.mark.parametrize("normaliser", [RowSum(SETTINGS), Length(SETTINGS)], ids=["row-sum", "length"])
@pytest.mark.parametrize("weight", [None, draw(1, 2, 4, 5)], ids=["positive", "signed"])
def test_quick_is_literal(normaliser: NormaliserFunction, weight: Tensor | None) -> None:
    log_weight, value, visible = draw(1, 2, 4, 5, seed=1), draw(1, 2, 5, 3, seed=2), draw(4, 5) > -0.5
    visible[2] = False
    arguments = (log_weight, weight, normaliser, value)
    pair_values = {"visible": visible, "pair_values": lambda weights: 2 * weights[..., :3]}
    for more in ({}, pair_values):
        torch.testing.assert_close(smoother.quick(*arguments, **more), smoother.literal(*arguments, **more))


def test_weights_stand_log_weights_of_any_size() -> None:
    log_weight = torch.tensor([[[[1000.0, 999.0], [-1000.0, -1001.0]]]])
    expected = torch.tensor([1 / (1 + math.exp(-1)), 1 / (1 + math.e)]).expand(1, 1, 2, 2)
    torch.testing.assert_close(smoother.weights(log_weight, None, RowSum(SETTINGS)), expected)


def test_no_row_sum_raises_or_is_given_an_epsilon() -> None:
    weight = torch.tensor([[[[1.0, -1.0 + 2**-23]]]])
    assert smoother.weights(None, weight, RowSum(SETTINGS)).tolist() == [[[[2.0**23, -(2.0**23) + 1]]]]


@pytest.mark.parametrize("gradients", [True, False])
def test_blocks_are_computed_again_for_the_gradient_only(gradients: bool) -> None:
    x, computed = draw(1, 1, 7, 2).requires_grad_(gradients), []

    def block(asked: slice) -> Tensor:
        computed.append((asked.start, asked.stop))
        return x[:, :, asked].square()

    with torch.set_grad_enabled(gradients):
        output = smoother.in_blocks(block, [slice(0, 3), slice(3, 6), slice(6, 7)])
    torch.testing.assert_close(output, x.square())
    assert sorted(computed) == [(0, 3), (3, 6), (6, 7)]
    if gradients:
        output.sum().backward()
        assert sorted(computed) == sorted(2 * [(0, 3), (3, 6), (6, 7)])
        torch.testing.assert_close(x.grad, 2 * x.detach())


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
        smoother.literal(log_weight, None, RowSum(SETTINGS), value, visible=visible),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("path", ["literal", "quick", "fused"])
def test_dropout_falls_on_weights_and_keeps_their_mean(path: str) -> None:
    torch.manual_seed(0)
    log_weight, value = torch.zeros(1, 1, 2000, 4), torch.ones(1, 1, 4, 1)
    if path == "fused":
        output = smoother.fused([(torch.zeros(1, 1, 2000, 1), torch.zeros(1, 1, 4, 1))], value, dropout=0.5)
    else:
        output = getattr(smoother, path)(log_weight, None, RowSum(SETTINGS), value, dropout=0.5)
    assert set(output.unique().tolist()) == {0.0, 0.5, 1.0, 1.5, 2.0}
    assert output.mean().item() == pytest.approx(1, abs=0.05)


def test_blocks_draw_the_same_weights_again() -> None:
    torch.manual_seed(0)
    value = torch.ones(1, 1, 4, 1, requires_grad=True)

    def block(asked: slice) -> Tensor:
        log_weight = torch.zeros(1, 1, asked.stop - asked.start, 4)
        return smoother.quick(log_weight, None, RowSum(SETTINGS), value, dropout=0.5)

    output = smoother.in_blocks(block, [slice(first, first + 10) for first in range(0, 40, 10)], random=True)
    output.sum().backward()
    torch.testing.assert_close(value.grad.sum(), output.sum())


MASKS = {"visible": {"visible": torch.ones(5, 5, dtype=torch.bool)}, "bias": {"bias": torch.zeros(2, 5, 5)}}
BACKENDS = ("flash", "mem_efficient", "math", "cudnn")


def allowed() -> dict[str, bool]:
    return {name: getattr(torch.backends.cuda, f"{name}_sdp_enabled")() for name in BACKENDS}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, bool]]:
    """The kernels that were allowed at each call of torch's attention."""
    seen: list[dict[str, bool]] = []

    def attend(query: Tensor, key: Tensor, value: Tensor, **how: object) -> Tensor:
        seen.append(allowed())
        return torch.empty(*query.shape[:-1], value.size(-1), device=value.device)

    monkeypatch.setattr(smoother.F, "scaled_dot_product_attention", attend)
    return seen


def attend(device: str, **how: object) -> None:
    query, key, value = (torch.ones(1, 2, 5, 4, device=device) for _ in range(3))
    moved = {name: one.to(device) if isinstance(one, Tensor) else one for name, one in how.items()}
    smoother.fused([(query, key)], value, **moved)


@pytest.mark.parametrize("mask", MASKS)
def test_cudnn_never_sees_a_mask(mask: str, asked: list[dict[str, bool]]) -> None:
    """The device `meta` stands for a GPU: it is no CPU."""
    before = allowed()
    attend("meta", **MASKS[mask])
    assert all(before.values()) and asked == [before | {"cudnn": False}]
    assert allowed() == before


def test_cudnn_may_attend_where_there_is_no_mask_and_a_cpu_is_not_asked(asked: list[dict[str, bool]]) -> None:
    before = allowed()
    attend("meta")
    attend("meta", causal=True)
    attend("cpu", **MASKS["visible"])
    assert asked == [before] * 3
