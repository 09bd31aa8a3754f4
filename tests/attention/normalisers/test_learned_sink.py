import numpy as np
import pytest
import torch
from torch import Tensor

from kdx.attention import KernelAttention, smoother
from kdx.attention.interfaces import Settings
from kdx.attention.normalisers.learned_sink import LearnedSink
from tests.attention import by_hand

SINKS = [-1.5, 2.0]


def attention(**choices: object) -> KernelAttention:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="learned-sink", **choices).double()
    with torch.no_grad():
        module.normaliser.log_weight.copy_(torch.tensor(SINKS))
    return module


def with_sink(scores: np.ndarray, head: int, query: int) -> np.ndarray:
    return np.exp(scores) / (np.exp(SINKS[head]) + np.exp(scores).sum())


@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize("positions", [(), ("alibi",)])
@pytest.mark.parametrize("tokens", [9, 300], ids=["one block", "several"])
def test_it_is_the_definition_token_by_token(filter: str, positions: tuple[str, ...], tokens: int) -> None:
    module, x = attention(filter=filter, positions=positions), by_hand.draw(tokens, 8)
    slopes = [2**-4, 2**-8] if positions else [0, 0]
    expected = by_hand.smoothed(
        module,
        x,
        score=lambda q, k, i, j, head: by_hand.scaled(q, k, i, j, head) - slopes[head] * abs(i - j),
        row=with_sink,
        sees=lambda i, j: filter == "full" or j <= i,
    )
    by_hand.same(module, x, expected)


def test_it_starts_at_one() -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="learned-sink")
    torch.manual_seed(0)
    fixed = KernelAttention(8, 2, normaliser="softmax-plus-one")
    x = by_hand.draw(1, 5, 8).float()
    torch.testing.assert_close(module(x), fixed(x))


@pytest.mark.parametrize("kernel", ["exponential", "rbf", "student-t", "elu"])
@pytest.mark.parametrize("filter", ["full", "causal", "window"])
@pytest.mark.parametrize("tokens", [6, 280])
def test_the_gradient_of_the_sink_is_the_same_on_both_paths(kernel: str, filter: str, tokens: int) -> None:
    module, x = attention(kernel=kernel, filter=filter, left=3), by_hand.draw(1, tokens, 8)
    gradients: list[Tensor] = []
    for module.path in ("literal", "fused"):
        module.zero_grad()
        module(x).square().sum().backward()
        gradients.append(module.normaliser.log_weight.grad.clone())
    assert (gradients[0] != 0).all()
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-10, atol=1e-10)


def test_a_sink_far_above_its_row_has_a_gradient_that_is_a_number() -> None:
    sink = LearnedSink(Settings(4, 1, 4))
    smoother.weights(torch.full((1, 1, 1, 2), -1000.0), None, sink).sum().backward()
    assert sink.log_weight.grad.tolist() == [0.0]


def test_half_precision_keeps_what_a_large_sink_is() -> None:
    """100.3 in 8 bits is 100.5, which would leave 0.38 of the value."""
    sink, log_weight = LearnedSink(Settings(4, 1, 4)), torch.full((1, 1, 1, 1), 100.0, dtype=torch.bfloat16)
    torch.nn.init.constant_(sink.log_weight, 100.3)
    output = smoother.quick(log_weight, None, sink, torch.ones(1, 1, 1, 4, dtype=torch.bfloat16))
    torch.testing.assert_close(output.float(), torch.full((1, 1, 1, 4), 0.4256), rtol=0.01, atol=0)
