"""The exponential kernel's Taylor series up to the second degree, which is positive.

As a feature map it has 1 + D + D (D + 1) / 2 features: 153 with 16 features in a head, and already 2,145 with 64. Arora
et al. project queries and keys to 16 features; here that is the width of a head.
"""

import math

import torch
from torch import Tensor

from kdx.attention.interfaces import KernelFunction, Side, upcast


class Taylor(KernelFunction):
    """Second-degree Taylor series of the exponential."""

    name = "taylor"
    formula = "k(q, k) = 1 + s + s² / 2, s = ⟨q, k⟩ / √D"
    source = "Based, Arora et al. 2024"
    gives = "weight"
    positive_semi_definite = True

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        product = upcast(query @ key.transpose(-2, -1)) / math.sqrt(query.size(-1))
        return 1 + product + product.square() / 2

    def feature_map(self, features: Tensor, side: Side) -> Tensor:
        """Return 1, the features over D^(1/4), and the product of each two of these, squares divided by √2."""
        scaled = upcast(features) / features.size(-1) ** 0.25
        width = scaled.size(-1)
        # Slices, since the gradient of an index is summed number by number.
        pairs = torch.cat([scaled[..., at : at + 1] * scaled[..., at:] for at in range(width)], -1)
        lengths = torch.arange(width, 0, -1, device=features.device)
        squares = lengths.cumsum(0) - lengths
        halved = scaled.new_ones(pairs.size(-1)).index_fill(0, squares, 0.5**0.5)
        return torch.cat([torch.ones_like(scaled[..., :1]), scaled, pairs * halved], -1)
