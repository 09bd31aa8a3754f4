"""A second computation of an attention, pair by pair in numpy, and the three ways in which kdx computes it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kdx.attention import Cache, KernelAttention

HEADS, HEAD_WIDTH, ROWS, TOKENS = 2, 4, 2, 7
WIDTH = HEADS * HEAD_WIDTH

Weigh = Callable[[np.ndarray, np.ndarray, int, int, int], float]
"""The weight of a pair from the projected query and key (D,), their positions i and j, and the head."""


def attention(seed: int = 0, tokens: int = TOKENS, **parts: Any) -> tuple[KernelAttention, Tensor]:
    """A module in float64 with every parameter drawn anew, and tokens (ROWS, tokens, WIDTH)."""
    generator = torch.Generator().manual_seed(seed)
    torch.default_generator.manual_seed(seed)
    module = KernelAttention(WIDTH, HEADS, **{"filter": "causal"} | parts).double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return module, torch.randn(ROWS, tokens, WIDTH, generator=generator, dtype=torch.float64)


def heads(linear: torch.nn.Linear, x: np.ndarray) -> np.ndarray:
    """Projected tokens (T, M) in heads: (H, T, D)."""
    weight, bias = (parameter.detach().numpy() for parameter in (linear.weight, linear.bias))
    return (x @ weight.T + bias).reshape(len(x), HEADS, HEAD_WIDTH).transpose(1, 0, 2)


def expected(module: KernelAttention, x: Tensor, weigh: Weigh, later: bool = False) -> np.ndarray:
    """Eq. 2 in each head, (B, H, T, D), row by row; with `later` a query sees all keys, else those up to its own."""
    output = np.zeros((len(x), HEADS, x.size(1), HEAD_WIDTH))
    for row, tokens in enumerate(x.numpy()):
        query, key, value = (heads(part, tokens) for part in (module.query, module.key, module.value))
        for head in range(HEADS):
            for i in range(len(tokens)):
                seen = range(len(tokens) if later else i + 1)
                each = np.array([weigh(query[head, i], key[head, j], i, j, head) for j in seen])
                # A query that only meets keys of weight 0 gets 0.
                output[row, head, i] = each @ value[head, seen] / (each.sum() or 1.0)
    return output


@torch.no_grad()
def computed(module: KernelAttention, x: Tensor) -> dict[str, np.ndarray]:
    """The same by kdx, (B, H, T, D): by the literal path, the fast one, and the fast one from a cache."""
    found = {}
    for module.path in ("literal", "fused"):
        found[module.path] = module.smooth(x).numpy()
    if module.filter.triangular:
        cache = Cache()
        steps = [module.smooth(x[:, at : at + 1], cache=cache) for at in range(x.size(1))]
        found["cached"] = torch.cat(steps, 2).numpy()
    return found


def exponential(q: np.ndarray, k: np.ndarray) -> float:
    """exp(⟨q, k⟩ / √D)"""
    return float(np.exp(q @ k / np.sqrt(len(q))))


def check(module: KernelAttention, x: Tensor, weigh: Weigh, later: bool = False) -> None:
    """All ways give the second computation, within 1e-10."""
    wanted = expected(module, x, weigh, later)
    for path, found in computed(module, x).items():
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10, err_msg=path)
