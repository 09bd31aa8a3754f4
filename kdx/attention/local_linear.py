"""The local linear estimator: the average of values becomes their regression on the keys, at the query.

Eq. 2 of Tsai et al. fits a constant to the values near a query (Nadaraya 1964; Watson 1964). One order above, a line
v ≈ a + B (k - q) is fitted with the same weights, and a is the output (Zuo et al. 2026; Fan & Gijbels 1996, Sec. 3.1).
With normalised weights p, a ridge λ on B, and the moments μ = Σ p (k - q) and S = Σ p (k - q)(k - q)ᵀ + λI, the weight
of a key becomes

    p (1 - ⟨k - q, S⁻¹ μ⟩) / (1 - ⟨μ, S⁻¹ μ⟩)                                                              (literal)
    p (1 + ⟨k - k̄, (C + λI)⁻¹ (q - k̄)⟩), k̄ = Σ p k, C = Σ p k kᵀ - k̄ k̄ᵀ                                      (fused)

which is the same. It can be negative, and a row still sums to 1. λ is learned for each head, from 1 on; without an end
to λ it is Eq. 2. It takes D × D numbers a query.
"""

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import upcast


class LocalLinear(nn.Module):
    """Weights of the local linear estimator, made of those of Eq. 2."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.log_ridge = nn.Parameter(torch.zeros(heads, 1, 1, 1))

    def literal(self, weights: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Return the weights of the keys, (B, H, Tq, Tk), as printed.

        Args:
            weights: those of Eq. 2, (B, H, Tq, Tk); each row sums to 1, or is 0.
            query, key: what the kernel compares, (B, H, Tq, C) and (B, H, Tk, C).
        """
        difference = upcast(key).unsqueeze(-3) - upcast(query).unsqueeze(-2)  # (B, H, Tq, Tk, C)
        weighted = weights.unsqueeze(-1) * difference
        mean = weighted.sum(-2)
        slope = self._solved(weighted.transpose(-2, -1) @ difference, mean)
        along = (difference @ slope.unsqueeze(-1)).squeeze(-1)
        return weights * (1 - along) / (1 - (mean * slope).sum(-1, keepdim=True))

    def fused(self, weights: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Return the same by products of matrices."""
        query, key = upcast(query), upcast(key)
        # Moved to the middle of all keys, so that the squares below lose no digits to it.
        middle = key.mean(-2, keepdim=True)
        query, key = query - middle, key - middle
        width = key.size(-1)
        squares = (key.unsqueeze(-1) * key.unsqueeze(-2)).flatten(-2)  # (B, H, Tk, C²)
        mean = weights @ key
        spread = (weights @ squares).view(*mean.shape, width) - mean.unsqueeze(-1) * mean.unsqueeze(-2)
        slope = self._solved(spread, query - mean)
        return weights * (1 + slope @ key.transpose(-2, -1) - (slope * mean).sum(-1, keepdim=True))

    def _solved(self, spread: Tensor, vector: Tensor) -> Tensor:
        """Return (spread + λI)⁻¹ of a vector: (B, H, Tq, C, C) and (B, H, Tq, C) to (B, H, Tq, C)."""
        ridge = self.log_ridge.to(spread.dtype).exp() * torch.eye(
            spread.size(-1), dtype=spread.dtype, device=spread.device
        )
        return torch.linalg.solve(spread + ridge, vector.unsqueeze(-1)).squeeze(-1)
