"""Product with a symmetric exponential kernel on positions.

W_T is M × D for each head and has no bias; the factor is exponential for any k_F, and the same for the whole batch. On
a CPU it is therefore computed once for all rows of the batch; as D more columns of each row it took 1.1 to 1.7 times
the time with 1 and 2 rows, at 64 to 2048 tokens, with and without gradients.
"""

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from kdx.attention.interfaces import DotProduct, Part, Settings, TokenPositions, index_select
from kdx.attention.positions.blockwise import Blockwise


class Product(Blockwise):
    """A symmetric exponential kernel on positions."""

    name = "product"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(⟨t_q W_T, t_k W_T⟩ / √D)"
    source = "Tsai et al. 2019, Eq. 9"
    takes = ("encoding",)
    spaces = ("sequence", "image", "multimodal", "crossmodal")
    uses_vector = True
    absolute = True

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.shape = (settings.heads, settings.head_width)
        self.projection = nn.Linear(settings.width, settings.heads * settings.head_width, bias=False)
        nn.init.xavier_uniform_(self.projection.weight)

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor]:
        of_query, of_key = self._columns(at_query, at_key)
        of_query = of_query / math.sqrt(self.shape[1])
        return lambda _, query_part, key_part: (
            index_select(of_query, query_part) @ index_select(of_key, key_part).transpose(-2, -1)
        )

    def dot_product(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions, past: bool
    ) -> DotProduct | None:
        return None if query.device.type == "cpu" else self._columns(at_query, at_key)

    def _columns(self, at_query: TokenPositions, at_key: TokenPositions) -> DotProduct:
        query = self._project(at_query)
        return query, query if at_key is at_query else self._project(at_key)

    def _project(self, place: TokenPositions) -> Tensor:
        projected: Tensor = self.projection(place.vector)
        return projected.view(*projected.shape[:-1], *self.shape).transpose(-3, -2)  # (…, H, T, D)
