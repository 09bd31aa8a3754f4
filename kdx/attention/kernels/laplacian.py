"""Laplacian kernel.

The scale is that of the other kernels; with it the logarithm of the weight spreads by about 1 at any D.

No matrix product gives these distances; at 64 features a head they cost about twenty times as much as one, and long
rows, which are computed in blocks, compute them twice.
"""

import math

import torch
from torch import Tensor

from kdx.attention.interfaces import KernelFunction, upcast


class Laplacian(KernelFunction):
    """Exponential of the absolute difference."""

    name = "laplacian"
    formula = "k(q, k) = exp(-|q - k|₁ / √D)"
    positive_semi_definite = True

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        return -torch.cdist(upcast(query), upcast(key), p=1.0) / math.sqrt(query.size(-1))
