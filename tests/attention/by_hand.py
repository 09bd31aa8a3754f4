"""A second computation of attention, and how kdx's is held against it.

It is numpy in float64: a loop over heads, queries and keys, and nothing of kdx but the parameters.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kdx.attention import Cache, KernelAttention

HEADS, HEAD_WIDTH, ROWS, TOKENS = 2, 4, 2, 7
WIDTH = HEADS * HEAD_WIDTH

Score = Callable[[np.ndarray, np.ndarray, int, int, int], float]
"""The score of a pair, from the projected query and key (D,), their positions i and j, and the head."""
Row = Callable[[np.ndarray, int, int], Sequence[float]]
"""The weights of a row from the scores of the keys that are seen, the head, and the query's index."""


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def attention(seed: int = 0, tokens: int = TOKENS, **parts: Any) -> tuple[KernelAttention, Tensor]:
    """A module in float64 with every parameter drawn anew, and tokens (ROWS, tokens, WIDTH)."""
    generator = torch.Generator().manual_seed(seed)
    torch.default_generator.manual_seed(seed)
    module = KernelAttention(WIDTH, HEADS, **{"filter": "causal"} | parts).double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return module, torch.randn(ROWS, tokens, WIDTH, generator=generator, dtype=torch.float64)


def heads(linear: nn.Linear, x: Tensor, head_width: int) -> np.ndarray:
    """Tokens (T, M), projected: (H, T, D)."""
    weight, bias = (parameter.detach().numpy() for parameter in (linear.weight, linear.bias))
    return (x.numpy() @ weight.T + bias).reshape(len(x), -1, head_width).transpose(1, 0, 2)


def scaled(q: np.ndarray, k: np.ndarray, i: int, j: int, head: int) -> float:
    """⟨q, k⟩ / √D, the logarithm of the exponential kernel."""
    return float(q @ k / np.sqrt(len(q)))


def softmax(scores: np.ndarray, head: int = 0, query: int = 0) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def shares(weights: np.ndarray, head: int = 0, query: int = 0) -> np.ndarray:
    """Divide weights by their sum; a query that only meets keys of weight 0 gets 0."""
    return weights / (weights.sum() or 1.0)


def smoothed(
    module: KernelAttention,
    x: Tensor,
    *,
    score: Score = scaled,
    row: Row = softmax,
    sees: Callable[[int, int], bool] = lambda i, j: True,
    normalise: Callable[[np.ndarray], np.ndarray] = lambda projected: projected,
) -> np.ndarray:
    """Return the output of each head for tokens (T, M): (H, T, D).

    Args:
        row: how weights are made of a row's scores.
        sees: whether query i sees key j.
        normalise: what is made of queries and of keys, (H, T, D).
    """
    key_projection = module.key or module.query
    linears = (module.query, key_projection, module.value or key_projection)
    query, key, value = (heads(linear, x, module.shape[1]) for linear in linears)
    query, key = normalise(query), normalise(key)
    group = len(query) // len(key)
    output = np.zeros_like(query)
    for head in range(len(query)):
        for i in range(len(x)):
            seen = [j for j in range(len(x)) if sees(i, j)]
            scores = np.array([score(query[head, i], key[head // group, j], i, j, head) for j in seen])
            output[head, i] = np.array(row(scores, head, i)) @ value[head // group, seen]
    return output


@torch.no_grad()
def same(module: KernelAttention, x: Tensor, expected: np.ndarray) -> None:
    """Both paths, and where no query sees a later key the fast one from a cache, give of tokens (T, M) what is
    expected in each head, within 1e-10."""
    result = {}
    for module.path in ("literal", "fused"):
        result[module.path] = module.smooth(x[None])
    if module.filter.triangular:
        cache = Cache()
        result["cached"] = torch.cat([module.smooth(token[None, None], cache=cache) for token in x], 2)
    for path, output in result.items():
        np.testing.assert_allclose(output[0].numpy(), expected, rtol=1e-10, atol=1e-10, err_msg=path)


def exponential(q: np.ndarray, k: np.ndarray) -> float:
    """exp(⟨q, k⟩ / √D)"""
    return float(np.exp(q @ k / np.sqrt(len(q))))


def check(module: KernelAttention, x: Tensor, weigh: Score, later: bool = False) -> None:
    """Every path gives Eq. 2 with these weights of pairs, of tokens (B, T, M).

    Args:
        later: whether a query sees all keys; else those up to its own.
    """
    for tokens in x:
        same(module, tokens, smoothed(module, tokens, score=weigh, row=shares, sees=lambda i, j: later or j <= i))
