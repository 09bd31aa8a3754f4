"""The keys of the largest weights: the only filter that looks at the weight of a key, and not at its position.

Keys that weigh exactly as much as the k-th are all kept, so the order of the keys breaks no tie. In a decoder the keys
are chosen among those up to the query.
"""

import torch
from torch import Tensor

from kdx.attention.interfaces import FilterFunction, upcast
from kdx.words import option


class TopK(FilterFunction):
    """The k keys of the largest weights."""

    name = "top-k"
    formula = "M(x_q, S) = {x_k: w(x_q, x_k) ≥ the k-th largest of w(x_q, ·)}"
    source = "Zhao et al. 2019, Sec. 3"
    reads_content = True
    top_k: int = option(16, minimum=1)
    """k: the number of keys that a query sees."""

    def visible(self, query: Tensor, key: Tensor) -> Tensor | None:
        return key <= query if self.past else None

    def seen(self, queries: range, keys: range) -> slice:
        return slice(0, min(max(queries.stop - keys.start, 1), len(keys)) if self.past else len(keys))

    @torch.no_grad()
    def chosen(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor | None:
        if log_weight is None:
            assert weight is not None
            score = weight
        elif weight is None:
            score = log_weight
        else:
            # The largest weight of a row is scaled to 1, which does not change the order.
            log_weight = upcast(log_weight)
            score = weight * (log_weight - log_weight.amax(-1, keepdim=True)).exp()
        if score.size(-1) <= self.top_k:
            return None
        if visible is not None:
            score = score.masked_fill(~visible, -torch.inf)
        return score >= score.topk(self.top_k, -1).values[..., -1:]
