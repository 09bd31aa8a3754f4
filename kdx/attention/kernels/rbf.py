"""Radial-basis-function kernel.

The scale is √D on the squared distance, as printed, not 2√D: T = 1. After division by the row sum it is
exp((2⟨q, k⟩ - |k|²) / T√D), the exponential kernel at half the temperature with a penalty on long keys; at T = 2 only
the penalty distinguishes the two.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from kdx.attention.interfaces import DotProduct, upcast
from kdx.attention.kernels.tempered import Tempered


class RBF(Tempered):
    """Radial basis function."""

    name = "rbf"
    formula = "k(q, k) = exp(-|q - k|² / T√D)"
    source = "Tsai et al. 2019, Table 2"
    positive_semi_definite = True

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        # The differences themselves: expanding the square loses the digits of a small distance between long vectors.
        distance = torch.cdist(upcast(query), upcast(key), compute_mode="donot_use_mm_for_euclid_dist")
        return self.tempered(-distance.square() / math.sqrt(query.size(-1)))

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct:
        """Return columns for -|q - k|² = 2⟨q, k⟩ - |k|² - |q|²: one more than ⟨q, k⟩, as |q|² cancels in a row sum."""
        norm = upcast(key).square().sum(-1, keepdim=True)
        columns = [norm.to(key.dtype)]
        if norm.dtype != key.dtype:
            # With 8 bits of |k|² only, the weight would be off by several per cent; the remainder brings it to 16 bits.
            columns.append((norm - columns[0]).to(key.dtype))
        query = F.pad(query, (0, len(columns)), value=-1.0)
        return self.tempered(query), torch.cat([2 * key, *columns], -1)

    def constant_term(self, query: Tensor) -> Tensor:
        norm = upcast(query).square().sum(-1, keepdim=True)
        return self.tempered(-norm / math.sqrt(query.size(-1)))
