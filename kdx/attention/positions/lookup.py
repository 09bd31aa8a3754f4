"""Look-up of a vector for the distance.

The distance runs from query to key, as in Shaw et al.; √D is theirs, and not printed in Eq. 6.
"""

import math

from torch import Tensor

from kdx.attention.distances import DistanceTable
from kdx.attention.interfaces import Options, PositionScheme, TokenPositions


class Lookup(PositionScheme):
    """A learned vector for each distance."""

    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(⟨f_q W_q, a_(j-i)⟩ / √D)"
    source = "Tsai et al. 2019, Eq. 6; Shaw et al. 2018"
    options = ("clip", "sharing")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.table = DistanceTable(options)

    def log_weight(self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        return self.table.products(query / math.sqrt(query.size(-1)), at_query, at_key)
