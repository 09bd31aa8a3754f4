"""The translation-equivariant local layer: the neighbours, weighted by their distance.

K_j = 0 for |j| > C, and with a causal filter for j > 0 as well. Beyond the ends of the row, and at padding, X is zero.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.cache import Cache, Keys
from kdx.attention.interfaces import ContextMixer
from kdx.words import option


class Convolution(ContextMixer):
    """Σ_{|j| ≤ C} X_{i+j} K_j, with a matrix M × M for each distance and no bias.

    Args:
        width: M
        filter: `full` or `causal`.

    Raises:
        ValueError: for another filter.
    """

    name = "convolution"
    formula = "X_i ← Σ_{|j| ≤ C} X_{i+j} K_j"
    neighbours: int = option(2, minimum=0)
    """C: tokens to either side, or back only."""

    def __init__(self, width: int, *, filter: str = "full", **options: Any) -> None:
        super().__init__(**options)
        neighbours = self.neighbours
        if filter not in ("full", "causal"):
            raise ValueError(f"filter: {filter!r}; allowed for a convolution: full, causal")
        self.causal = filter == "causal"
        # The weight at [:, :, C + j] is the transpose of K_j.
        self.kernel = nn.Conv1d(width, width, 1 + (neighbours if self.causal else 2 * neighbours), bias=False)
        nn.init.xavier_uniform_(self.kernel.weight)

    def forward(
        self,
        x: Tensor,
        *,
        query_positions: Tensor | None = None,
        key_padding: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        # The order is that of the row. Padding counts as zero. A cache keeps the last C tokens.
        if cache is not None and not self.causal:
            raise ValueError("cache: given to a layer that also looks ahead; allowed: with filter causal")
        if key_padding is not None:
            x = x.masked_fill(key_padding.unsqueeze(-1), 0.0)
        if cache is not None and cache.keys is not None:
            seen = torch.cat([cache.keys.value[:, 0], x], 1)
        else:
            seen = F.pad(x, (0, 0, self.neighbours, 0 if self.causal else self.neighbours))
        if cache is not None:
            last = seen[:, None, seen.size(1) - self.neighbours :]
            cache.keys = Keys(last[..., :0], last, torch.arange(self.neighbours, device=x.device), None)
        return self.kernel(seen.transpose(1, 2)).transpose(1, 2)

    def extra_repr(self) -> str:
        return f"neighbours={self.neighbours}, causal={self.causal}"
