"""Linear kernel, of either sign.

The row is divided by its raw, signed sum, which can come near 0, so outputs have no bound; the paper reports that it
does not converge. There is no scale, since it would cancel.
"""

from torch import Tensor

from kdx.attention.interfaces import KernelFunction, Side


class Linear(KernelFunction):
    """Dot product, of either sign."""

    name = "linear"
    formula = "k(q, k) = ⟨q, k⟩"
    source = "Tsai et al. 2019, Table 2"
    gives = "signed weight"
    positive_semi_definite = True
    blind_to_query_norm = True

    def feature_map(self, features: Tensor, side: Side) -> Tensor:
        return features

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-2, -1)
