"""The fixed pattern: the keys of the query's own block, and the last keys of every block, which summarise it.

This is the union of the paper's two patterns; if it reaches to both sides, the same without j ≤ i.
"""

from typing import Any

from torch import Tensor

from kdx.attention.filters.sparse import Sparse
from kdx.attention.interfaces import Settings
from kdx.words import option


class Fixed(Sparse):
    """The query's own block, and c summary columns of each block.

    Raises:
        ValueError: if there are more summary columns than l.
    """

    name = "fixed"
    formula = "M(x_q, S) = {x_k: j ≤ i, ⌊j/l⌋ = ⌊i/l⌋} ∪ {x_k: j ≤ i, j mod l ≥ l - c}"
    source = "Child et al. 2019, Sec. 4.3"
    summary: int = option(2, minimum=0)
    """c: the number of last tokens of each block that all later tokens see."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        if self.summary > self.stride:
            raise ValueError(f"summary: {self.summary}; allowed: 0 to the stride, {self.stride}")

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        own = query // self.stride == key // self.stride
        chosen = own | (key % self.stride >= self.stride - self.summary)
        return chosen & (key <= query) if self.past else chosen

    def seen(self, queries: range, keys: range) -> slice | list[int]:
        own = range(queries.start // self.stride, (queries.stop - 1) // self.stride + 1)
        end = min(keys.stop, queries.stop) if self.past else keys.stop
        seen: list[int] = []
        for block in range(keys.start // self.stride, (keys.stop - 1) // self.stride + 1):
            columns = self.stride if block in own else self.summary
            stop = (block + 1) * self.stride
            seen += range(max(stop - columns, keys.start) - keys.start, min(stop, end) - keys.start)
        return seen or slice(0, 1)
