"""Look-up of a vector for the distance.

The distance is from query to key, as in Shaw et al.; √D is theirs, and not printed in Eq. 6.
"""

import math
from typing import Any

from torch import Tensor

from kdx.attention.distances import ByTable, DistanceTable
from kdx.attention.interfaces import PositionScheme, Settings, TokenPositions


class Lookup(ByTable, PositionScheme):
    """A learned vector for each distance."""

    name = "lookup"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(⟨f_q W_q, a_(j-i)⟩ / √D)"
    source = "Tsai et al. 2019, Eq. 6; Shaw et al. 2018"
    spaces = ("sequence", "multimodal", "crossmodal", "graph")

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.table = DistanceTable(settings, self.clip, self.sharing)

    def log_weight(self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        return self.table.products(query / math.sqrt(query.size(-1)), at_query, at_key)
