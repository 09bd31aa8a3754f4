"""Squared rectified dot product, which is 0 for many pairs, over the number of visible keys.

The row sum of a query that is similar to no key would be 0; divided by the length, its output is just 0.
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
