"""Cosine kernel: an exponential of the angle, with a learned temperature for each head.

τ = exp(log τ) is positive and starts at √D, where the logarithm of the weight spreads like that of the exponential
kernel for queries and keys of unit variance.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.interfaces import DotProduct, KernelFunction, Settings, upcast


class Cosine(KernelFunction):
    """Exponential of the angle, with a learned temperature for each head; a zero vector has cosine 0 with all."""

    name = "cosine"
    formula = "k(q, k) = exp(τ ⟨q, k⟩ / |q| |k|)"
    source = "query–key normalisation, Henry et al. 2020"

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.log_temperature = nn.Parameter(torch.full((settings.heads,), math.log(settings.head_width) / 2))

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        cosine = _unit(query) @ _unit(key).transpose(-2, -1)
        return self.log_temperature.exp()[:, None, None] * cosine

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct:
        temperature = self.log_temperature.exp()[:, None, None] * math.sqrt(query.size(-1))
        return (temperature * _unit(query)).to(query.dtype), _unit(key).to(key.dtype)


def _unit(vectors: Tensor) -> Tensor:
    return F.normalize(upcast(vectors), dim=-1)
