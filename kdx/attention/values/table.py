"""Values free of position, and a vector for the distance."""

from torch import Tensor

from kdx.attention.distances import DistanceTable
from kdx.attention.interfaces import Options, TokenPositions, ValueFunction


class WithTable(ValueFunction):
    """Features, and a learned vector for the distance."""

    formula = "v(x_q, x_k) = f_k W_v + a_(j-i)"
    source = "Shaw et al. 2018"
    options = ("clip", "sharing")
    spaces = ("sequence", "multimodal", "crossmodal")
    uses_weights = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.table = DistanceTable(options)

    def of_pairs(self, weights: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        return self.table.sums(weights, at_query, at_key)
