"""The base class of schemes that compute their factor for a part of the queries and of the keys."""

from collections.abc import Callable

from torch import Tensor

from kdx.attention.interfaces import Part, PositionScheme, TokenPositions


class Blockwise(PositionScheme):
    """A factor of which any part is as easy to compute as the whole."""

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor]:
        raise NotImplementedError

    def log_weight(self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        everything = slice(0, at_query.positions.size(-1)), slice(0, at_key.positions.size(-1))
        return self.blockwise(query, at_query, at_key)(query, *everything)
