"""Values free of position, and a vector for the distance."""

from typing import Any

from torch import Tensor

from kdx.attention.distances import ByTable, DistanceTable
from kdx.attention.interfaces import Settings, TokenPositions, ValueFunction


class WithTable(ByTable, ValueFunction):
    """Features, and a learned vector for the distance."""

    name = "table"
    formula = "v(x_q, x_k) = f_k W_v + a_(j-i)"
    source = "Shaw et al. 2018"
    spaces = ("sequence", "multimodal", "crossmodal", "graph")
    uses_weights = True

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.table = DistanceTable(settings, self.clip, self.sharing)

    def pair_values(self, weights: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        return self.table.sums(weights, at_query, at_key)
