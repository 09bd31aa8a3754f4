"""Polynomial kernel of degree 2.

Like the linear kernel, it does not depend on the length of the query: a scale cancels in the row sum.
"""

from torch import Tensor

from kdx.attention.interfaces import KernelFunction, upcast


class Polynomial(KernelFunction):
    """Squared dot product."""

    name = "polynomial"
    formula = "k(q, k) = ⟨q, k⟩²"
    source = "Tsai et al. 2019, Table 2"
    gives = "weight"
    positive_semi_definite = True
    blind_to_query_norm = True

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return upcast(query @ key.transpose(-2, -1)).square()
