"""A learned feature map: exponentials of linear functions and of their negatives.

W_h is D × D for each head and starts as the identity, b_h at 0. One map serves queries and keys, so k is a kernel; with
separate maps, as in Zhang et al., W_q and W_k could absorb the difference. The exponentials are as printed; code that
they published later, with Based, has softmaxes over the features instead.
"""

from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import Settings, upcast
from kdx.attention.kernels.exponential_features import ExponentialFeatures


class Hedgehog(ExponentialFeatures):
    """Dot product of learned exponential features."""

    name = "hedgehog"
    formula = "k(q, k) = ⟨φ(q), φ(k)⟩, φ(x) = (exp(W_h x + b_h), exp(-W_h x - b_h))"
    source = "Zhang et al. 2024"
    positive_semi_definite = True

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.shape = (settings.heads, 1, settings.head_width)
        self.map = nn.Parameter(torch.eye(settings.head_width).repeat(settings.heads, 1, 1))
        self.bias = nn.Parameter(torch.zeros(settings.heads * settings.head_width))

    def exponents(self, features: Tensor) -> Tensor:
        mapped = features @ upcast(self.map).transpose(-2, -1) + upcast(self.bias).view(self.shape)
        return torch.cat([mapped, -mapped], -1)
