import math

import pytest
import torch

from kdx.attention import KernelAttention
from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.alibi import ALiBi
from tests.attention.by_hand import HEADS, attention, check, exponential
from tests.attention.largest_tensor import LargestTensor


def test_bias_falls_with_the_distance_at_a_rate_for_each_head() -> None:
    bias = ALiBi(Settings(8, heads=4, head_width=2)).bias(torch.tensor([-2, 0, 1]))
    assert bias.tolist() == [[-2 * m, 0, -m] for m in (1 / 4, 1 / 16, 1 / 64, 1 / 256)]


@pytest.mark.parametrize("heads", [3, 6, 12])
def test_the_rates_are_as_exact_as_the_module(heads: int) -> None:
    rates = [2.0 ** (-8.0 / heads * head) for head in range(1, heads + 1)]
    scheme = ALiBi(Settings(8, heads, 2))
    assert torch.equal(scheme.slopes, torch.tensor(rates, dtype=torch.float32))
    assert scheme.double().slopes.tolist() == pytest.approx(rates, rel=1e-15)
    assert torch.equal(scheme.float().slopes, torch.tensor(rates, dtype=torch.float32))


def test_it_learns_and_stores_nothing() -> None:
    assert not ALiBi(Settings(8, 4, 2)).state_dict()


@pytest.mark.parametrize("filter", ["causal", "full"])
def test_every_path_gives_what_a_loop_over_pairs_gives(filter: str) -> None:
    module, x = attention(positions=["alibi"], filter=filter)
    check(
        module,
        x,
        lambda q, k, i, j, head: exponential(q, k) * math.exp(-(2.0 ** (-8 * (head + 1) / HEADS)) * abs(i - j)),
        later=filter == "full",
    )


def test_the_column_is_the_bias_but_for_a_term_of_the_query() -> None:
    scheme, query = ALiBi(Settings(12, 3, 4)).double(), torch.zeros(1, 3, 300, 4, dtype=torch.float64)
    place = TokenPositions(torch.arange(5, 305), None, 5)
    columns = scheme.dot_product(query, place, place, past=True)
    assert columns is not None
    q, k = columns
    found, wanted = q @ k.transpose(-2, -1) / math.sqrt(4), scheme.log_weight(query, place, place)
    past = torch.ones(300, 300, dtype=torch.bool).tril()
    torch.testing.assert_close((found - found[..., :1])[:, past], (wanted - wanted[..., :1])[:, past])


@pytest.mark.parametrize(("filter", "reads"), [("causal", "the past"), ("full", "both sides")])
def test_only_the_past_of_a_long_row_takes_a_column(filter: str, reads: str) -> None:
    scheme, place = ALiBi(Settings(8, 2, 4)), TokenPositions(torch.arange(257), None, 0)
    query = torch.zeros(1, 2, 257, 4)
    assert (scheme.dot_product(query, place, place, past=filter == "causal") is None) == (reads == "both sides")
    short = TokenPositions(torch.arange(256), None, 0)
    assert scheme.dot_product(query[:, :, :256], short, short, past=True) is None


def test_a_long_row_makes_no_tensor_of_pairs_and_gives_what_the_literal_path_gives() -> None:
    x = torch.randn(1, 600, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    module = KernelAttention(8, 2, positions=["alibi"], filter="causal").double()
    gradients = []
    for module.path in ("fused", "literal"):
        module.zero_grad()
        with LargestTensor() as made:
            output = module.smooth(x)
            output.square().sum().backward()
        assert (made.numbers < 600 * 600) == (module.path == "fused")
        gradients.append([output, *(parameter.grad for parameter in module.parameters() if parameter.grad is not None)])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
