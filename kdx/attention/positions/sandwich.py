"""The inner product of two sinusoids, kept for positions alone, as the logarithm of a factor.

r_h = 8h/H, h = 1 … H, sets the heads apart, as the slopes of ALiBi do. The term of a distance 0 is the largest. Here p
counts from 0, as in the sinusoids of Vaswani et al. 2017; in the implementation of NVIDIA's NeMo it counts from 1.
"""

import math
from typing import Any

import torch
from torch import Tensor

from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.interfaces import DotProduct, Settings, TokenPositions
from kdx.attention.positions.by_distance import ByDistance
from kdx.words import option

# Forward and backward on one CPU core with 64 cosines and 4 heads of 64 features, the bias takes 0.5 of the columns'
# time at 512 × 512 positions, 0.8 at 1024 × 1024 and 1.1 at 4096 × 4096.
LARGEST_BIAS = 2048 * 2048


class Sandwich(ByDistance):
    """A weight that falls, in waves, with the distance, as the product of two sinusoids does."""

    name = "sandwich"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(Σ_p cos((i - j) / 10000^(p/n)) / r_h), p = 0 … n - 1"
    source = "Chi et al. 2023"
    frequencies: int = option(64, minimum=1)
    """n, how many cosines make the bias: half of d̄ of Chi et al. 2023."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.sinusoid = Sinusoidal(2 * self.frequencies, settings.max_positions)
        self.heads = settings.heads

    def bias(self, distance: Tensor) -> Tensor:
        product = self.sinusoid(distance)[..., 1::2].sum(-1)
        return product / self._ratios(product).view(-1, *[1] * distance.dim())

    def dot_product(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions, past: bool
    ) -> DotProduct | None:
        """cos(a - b) = cos a cos b + sin a sin b: a column for each sine and cosine."""
        if query.size(-2) * at_key.positions.size(-1) <= LARGEST_BIAS:
            return None
        of_query, of_key = (self.sinusoid(place.positions).unsqueeze(-3) for place in (at_query, at_key))
        scale = math.sqrt(query.size(-1)) / self._ratios(of_query)[:, None, None]
        return (scale * of_query).to(query.dtype), of_key.to(query.dtype)

    def _ratios(self, like: Tensor) -> Tensor:
        """r, (H,)"""
        return 8.0 / self.heads * torch.arange(1, self.heads + 1, dtype=like.dtype, device=like.device)
