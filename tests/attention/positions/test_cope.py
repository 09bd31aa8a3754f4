import math

import torch

from kdx.attention import KernelAttention
from kdx.attention.positions.cope import CoPE
from tests.attention.by_hand import HEAD_WIDTH, WIDTH, attention, check, exponential, heads


def position(module: KernelAttention, x: torch.Tensor, i: int, j: int, head: int) -> float:
    """How many of the tokens from j to i the query finds alike."""
    query, key = (heads(linear, x, HEAD_WIDTH)[head] for linear in (module.query, module.key))
    return sum(1 / (1 + math.exp(-(query[i] @ key[each]) / math.sqrt(HEAD_WIDTH))) for each in range(j, i + 1))


def test_every_path_gives_what_a_loop_over_pairs_gives() -> None:
    module, x = attention(positions=["cope"], counted=4, tokens=12)
    table, clipped = module.positions["cope"].weight.detach().numpy(), []
    for row in x.split(1):

        def weigh(q, k, i, j, head, row=row):
            p = min(position(module, row[0], i, j, head), 3.0)
            clipped.append(p == 3.0)
            below = math.floor(p)
            vector = table[below] * (1 - (p - below)) + table[math.ceil(p)] * (p - below)
            return exponential(q, k) * math.exp(q @ vector / math.sqrt(len(q)))

        check(module, row, weigh)
    assert any(clipped) and not all(clipped)


def test_a_query_that_finds_all_alike_counts_tokens() -> None:
    module, x = attention(positions=["cope"], counted=16)
    for linear, value in ((module.query, 100.0), (module.key, 100.0)):
        torch.nn.init.zeros_(linear.weight)
        torch.nn.init.constant_(linear.bias, value)
    projected = module._project(x, None)
    scheme = module.positions["cope"]
    found = scheme.log_weight(projected.raw, projected.at_query, projected.at_key)
    vectors = projected.raw @ scheme.weight.T / math.sqrt(HEAD_WIDTH)
    for i in range(x.size(1)):
        for j in range(i + 1):
            torch.testing.assert_close(found[..., i, j], vectors[..., i, i - j + 1])


def test_keys_of_the_memory_are_counted() -> None:
    module, x = attention(positions=["cope"], memory_length=3, tokens=9, counted=4)
    for module.path in ("fused", "literal"):
        torch.testing.assert_close(module(x[:, 3:], memory=x[:, :3]), module(x)[:, 3:])


def test_padding_counts_nothing() -> None:
    module, x = attention(positions=["cope"], tokens=5, counted=4)
    junk = 9 * torch.ones(2, 2, WIDTH, dtype=torch.float64)
    padding = torch.tensor([[False, False, True, True, False, False, False]] * 2)
    for module.path in ("fused", "literal"):
        positions = torch.tensor([0, 1, 1, 1, 2, 3, 4])
        amid = module(torch.cat([x[:, :2], junk, x[:, 2:]], 1), query_positions=positions, key_padding=padding)
        torch.testing.assert_close(amid[:, 4:], module(x)[:, 2:])


def test_gradients_reach_the_queries_and_keys_through_the_count() -> None:
    module, x = attention(positions=["cope"], counted=8)
    scheme = module.positions["cope"]
    assert isinstance(scheme, CoPE)
    projected = module._project(x, None)
    bias = scheme.log_weight(projected.raw, projected.at_query, projected.at_key)
    (of_key,) = torch.autograd.grad(bias.tril().sum(), projected.key)
    assert of_key.isfinite().all() and of_key.any()
