"""Polynomial kernel of an even degree.

Like the linear kernel, it does not depend on the length of the query: a scale cancels in the row sum. An odd degree
would give weights of both signs.
"""

from torch import Tensor

from kdx.attention.interfaces import KernelFunction, upcast
from kdx.words import option


class Polynomial(KernelFunction):
    """Power of the dot product."""

    name = "polynomial"
    formula = "k(q, k) = ⟨q, k⟩^p"
    source = "Tsai et al. 2019, Table 2"
    gives = "weight"
    positive_semi_definite = True
    blind_to_query_norm = True
    degree: int = option(2, minimum=2, multiple_of=2)
    """p, even; 2 in the paper."""

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return upcast(query @ key.transpose(-2, -1)).pow(self.degree)
