"""A position that each query counts itself: the number of tokens since the key that are similar to the query.

g_il = σ(⟨q_i, k_l⟩ / √D) says how much token l counts, and between two whole numbers the vectors of both are mixed. q
and k are those that the kernel compares. e is one table for all heads, drawn from N(0, 1/D) like the tables of other
schemes, where that of Golovneva et al. starts at 0. The listing in their paper has √D under the gate's product and not
under that of e; here both have it, as in the code that they published, since the formula adds e to k. A key after the
query has position 0, which they do not need. Padding does not count. Keys that only a filter or a mask hides do.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import Part, Settings, TokenPositions, upcast
from kdx.attention.positions.blockwise import Blockwise
from kdx.attention.running_sum import running_sum
from kdx.words import option


class CoPE(Blockwise):
    """A learned vector for each number of tokens that the query counts since the key."""

    name = "cope"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(⟨f_q W_q, e[Σ_l σ(⟨q, k_l⟩ / √D)]⟩ / √D), l = j … i"
    source = "Golovneva et al. 2024"
    spaces = ("sequence", "multimodal")
    past_only = True
    looks_at_tokens = True
    counted: int = option(64, minimum=2)
    """The number of vectors, from 0 tokens on; larger numbers share the last (Golovneva et al. 2024)."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.weight = nn.Parameter(torch.empty(self.counted, settings.head_width))
        nn.init.normal_(self.weight, std=settings.head_width**-0.5)

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor]:
        query_tokens, keys = at_query.tokens, at_key.tokens

        def part(query: Tensor, query_part: slice, key_part: Part) -> Tensor:
            # A slice reaches to the last query or beyond; between the keys of a list, others count too, so take all.
            queries, counted = (
                query_tokens.part(query_part),
                keys.part(key_part) if isinstance(key_part, slice) else keys,
            )
            gates = upcast(queries.compared @ counted.compared.transpose(-2, -1) / math.sqrt(query.size(-1))).sigmoid()
            gates = gates.masked_fill(counted.rank[:, None, None, :] > queries.rank[:, None, :, None], 0.0)
            if counted.padding is not None:
                gates = gates.masked_fill(counted.padding[:, None, None, :], 0.0)
            positions = running_sum(gates.flip(-1), -1).flip(-1).clamp(max=self.counted - 1)
            if not isinstance(key_part, slice):
                positions = positions.index_select(-1, key_part)
            scores = upcast(query @ self.weight.T / math.sqrt(query.size(-1)))
            below = positions.floor()
            lower, upper = (scores.gather(-1, whole.long()) for whole in (below, positions.ceil()))
            return lower + (positions - below) * (upper - lower)

        return part
