"""Squared rectified dot product, which is 0 for many pairs, over the number of keys seen.

Divided by its row sum, a query that finds no key alike would divide by 0; by the length it just answers 0.
"""

import math

from torch import Tensor

from kdx.attention.interfaces import KernelFunction, upcast


class ReLUSquared(KernelFunction):
    """Squared rectified dot product."""

    name = "relu-squared"
    formula = "k(q, k) = max(⟨q, k⟩ / √D, 0)²"
    source = "Wortsman et al. 2023"
    gives = "weight"
    normaliser = "length"

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return upcast(query / math.sqrt(query.size(-1)) @ key.transpose(-2, -1)).relu().square()
