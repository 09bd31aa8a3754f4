"""Exponential kernel, the scaled dot product of Vaswani et al. 2017.

T, the temperature, is 1 in every paper; rbf's, in these terms, is ½ (see there).
"""

import math

from torch import Tensor

from kdx.attention.interfaces import DotProduct, KernelFunction, Options


class Exponential(KernelFunction):
    """Exponential of the scaled dot product."""

    formula = "k(q, k) = exp(⟨q, k⟩ / T√D)"
    source = "Tsai et al. 2019, Eq. 3; Vaswani et al. 2017"
    options = ("scale", "temperature")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.temperature = options.temperature

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-2, -1) / (self.temperature * math.sqrt(query.size(-1)))

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct:
        return query if self.temperature == 1 else query / self.temperature, key
