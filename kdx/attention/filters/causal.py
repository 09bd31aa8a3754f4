"""A query sees the keys that do not come after it.

This includes its own key, as in the example of Tsai et al. 2019, though their text says "< i".
"""

from torch import Tensor

from kdx.attention.interfaces import FilterFunction


class Causal(FilterFunction):
    """The keys that do not come after the query."""

    name = "causal"
    formula = "M(x_q, S) = {x_k: j ≤ i}"
    source = "Tsai et al. 2019, Sec. 2.2.4"
    triangular = True

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        return key <= query

    def seen(self, queries: range, keys: range) -> slice:
        return slice(0, min(max(queries.stop - keys.start, 1), len(keys)))
