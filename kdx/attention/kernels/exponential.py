"""Exponential kernel, the scaled dot product of Vaswani et al. 2017.

T, the temperature, is 1 in every paper; rbf in this form has ½ (see there).
"""

import math

from torch import Tensor

from kdx.attention.interfaces import DotProduct
from kdx.attention.kernels.tempered import Tempered
from kdx.words import option


class Exponential(Tempered):
    """Exponential of the scaled dot product."""

    name = "exponential"
    formula = "k(q, k) = exp(⟨q, k⟩ / T√D)"
    source = "Tsai et al. 2019, Eq. 3; Vaswani et al. 2017"
    positive_semi_definite = True
    scale: str = option("scaled", words=("scaled", "unscaled"))
    """Whether the dot product is divided by √D, which keeps its variance at 1 (Vaswani et al. 2017, Sec. 3.2.1)."""

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        return self.tempered(query @ key.transpose(-2, -1) / self._divisor(query.size(-1)))

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct:
        factor = math.sqrt(query.size(-1)) / self._divisor(query.size(-1))
        return self.tempered(query if factor == 1 else factor * query), key

    def _divisor(self, width: int) -> float:
        return math.sqrt(width) if self.scale == "scaled" else 1.0
