"""The strided pattern: the nearest keys, and every l-th key.

This is the union of the paper's two patterns; if it reaches to both sides, the same with |i - j|. The band in the
paper's code has l keys, not l + 1.
"""

from torch import Tensor

from kdx.attention.filters.sparse import Sparse


class Strided(Sparse):
    """The l nearest keys, and every l-th key."""

    name = "strided"
    formula = "M(x_q, S) = {x_k: 0 ≤ i - j ≤ l} ∪ {x_k: j ≤ i, (i - j) mod l = 0}"
    source = "Child et al. 2019, Sec. 4.3"

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        distance = query - key
        chosen = (distance.abs() <= self.stride) | (distance % self.stride == 0)
        return chosen & (distance >= 0) if self.past else chosen

    def seen(self, queries: range, keys: range) -> slice | list[int]:
        first, stop = queries.start - keys.start, queries.stop - keys.start
        end = max(min(len(keys), stop), 1) if self.past else len(keys)
        near = range(max(0, first - self.stride), min(end, stop + self.stride))
        if len(queries) >= self.stride or not near:
            return slice(0, end)
        before = (j for i in range(first, stop) for j in range(i % self.stride, near.start, self.stride))
        beyond = (
            j for i in range(first, stop) for j in range(near.stop + (i - near.stop) % self.stride, end, self.stride)
        )
        return sorted([*before, *near, *beyond])
