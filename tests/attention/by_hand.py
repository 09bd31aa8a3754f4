"""A second computation of attention: numpy, float64, a loop over heads, queries and keys, and nothing of kdx."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from kdx.attention import KernelAttention

Row = Callable[[np.ndarray, int, int], Sequence[float]]
"""The weights of a row from the log-weights of the keys that are seen, the head, and the query's index."""


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax(scores: np.ndarray, head: int = 0, query: int = 0) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def heads(module: KernelAttention, name: str, x: Tensor) -> np.ndarray:
    """Tokens (T, M) by one of the module's projections: (H, T, D)."""
    linear, width = getattr(module, name) or module.query, module.shape[1]
    weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()
    projected = x.numpy() @ weight.T + bias
    return np.stack([projected[:, head * width : (head + 1) * width] for head in range(len(weight) // width)])


def attention(
    module: KernelAttention,
    x: Tensor,
    *,
    row: Row = softmax,
    sees: Callable[[int, int], bool] = lambda i, j: True,
    bias: Callable[[int, int, int], float] = lambda head, i, j: 0.0,
    normalise: Callable[[np.ndarray], np.ndarray] = lambda projected: projected,
) -> np.ndarray:
    """What each head of the exponential kernel makes of tokens (T, M): (H, T, D).

    Args:
        row: how weights are made of a row.
        sees: whether query i sees key j.
        bias: what is added to the log-weight, by head, i and j.
        normalise: what is made of queries and of keys, (H, T, D).
    """
    query, key, value = (heads(module, name, x) for name in ("query", "key", "value"))
    query, key = normalise(query), normalise(key)
    group = len(query) // len(key)
    output = np.zeros_like(query)
    for head in range(len(query)):
        for i in range(len(x)):
            seen = [j for j in range(len(x)) if sees(i, j)]
            scores = [query[head, i] @ key[head // group, j] / query.shape[-1] ** 0.5 + bias(head, i, j) for j in seen]
            for weight, j in zip(row(np.array(scores), head, i), seen, strict=True):
                output[head, i] += weight * value[head // group, j]
    return output


def same(module: KernelAttention, x: Tensor, expected: np.ndarray, **where: Tensor) -> None:
    """Both paths give, of tokens (T, M), what is expected in each head, within 1e-10."""
    for module.path in ("literal", "fused"):
        found = module.smooth(x[None], **where)[0].detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
