"""A gate at every token that reduces the weight of all earlier tokens.

f_l = σ(w_h x_l + b_h) is computed from the features of keys, with w and b for each head. With c_i = Σ_{l≤i} log f_l the
sum in the formula is c_i - c_j: for keys that do not come after the query, two columns of one dot product. For a key
after the query it is -|c_i - c_j|, which Lin et al. do not need. Padding has no gate; keys that only a filter or a mask
hides do.
"""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention import columns
from kdx.attention.interfaces import (
    DotProduct,
    Part,
    Settings,
    TokenFeatures,
    TokenPositions,
    index_select,
    upcast,
)
from kdx.attention.positions.blockwise import Blockwise
from kdx.attention.running_sum import running_sum


class Forgetting(Blockwise):
    """A gate at every token that reduces the weight of all earlier tokens."""

    name = "forgetting"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(Σ_l log f_l), f_l = σ(w_h x_l + b_h), l = j + 1 … i"
    source = "Lin et al. 2025"
    spaces = ("sequence", "multimodal")
    past_only = True
    looks_at_tokens = True
    reads = "log-forget"

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.gate = nn.Linear(settings.width, settings.heads)
        nn.init.xavier_uniform_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)

    def of_tokens(self, features: Tensor) -> Tensor:
        return F.logsigmoid(upcast(self.gate(features))).transpose(1, 2).unsqueeze(-1)

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor]:
        of_query, of_key = self._sums(at_query.tokens, at_key.tokens)

        def log_weight(query: Tensor, query_part: slice, key_part: Part) -> Tensor:
            # The difference of two long sums, in 64 bits, since it is small where the weight is large.
            difference = index_select(of_query, query_part) - index_select(of_key, key_part).transpose(-2, -1)
            return -difference.abs().to(upcast(query).dtype)

        return log_weight

    def dot_product(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions, past: bool
    ) -> DotProduct | None:
        # Known positions are in the order in which the gates are summed.
        if not past or at_query.start is None or query.size(-2) * at_key.positions.size(-1) <= columns.LARGEST_BIAS:
            return None
        # Counted from the middle, which halves the largest number and so its rounding.
        sums = [c.squeeze(-1) for c in self._sums(at_query.tokens, at_key.tokens)]
        middle = sums[1][..., sums[1].size(-1) // 2, None]
        of_query, of_key = ((c - middle).to(upcast(query).dtype) for c in sums)
        # c_i cancels in the row sum, but not in the gradient of a gate, where the rounding of a row must cancel too.
        return columns.of_difference(of_query, of_key, query)

    def _sums(self, queries: TokenFeatures, keys: TokenFeatures) -> tuple[Tensor, Tensor]:
        """Return c of queries and keys, in 64 bits, (B, H, Tq, 1) and (B, H, Tk, 1)."""
        log_forget = keys.read[self.reads]
        if keys.padding is not None:
            log_forget = log_forget.masked_fill(keys.padding[:, None, :, None], 0.0)
        sums = F.pad(running_sum(log_forget.double(), -2), (0, 0, 1, 0))
        ranks = queries.rank[:, None, :, None].expand(*sums.shape[:2], -1, -1)
        return sums.gather(-2, ranks), sums[:, :, 1:]
