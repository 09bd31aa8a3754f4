"""Exponential kernel, the scaled dot product of Vaswani et al. 2017.

k(q, k) = exp(⟨q, k⟩ / √D)          [Tsai et al. 2019, Eq. 3]
"""

import math

from torch import Tensor

from kdx.attention.contracts import DotProduct, KernelFunction


class Exponential(KernelFunction):
    """exp(⟨q, k⟩ / √D)."""

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct:
        return query, key
