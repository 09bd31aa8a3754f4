"""Student's t kernel with one degree of freedom: a heavy tail where rbf has none."""

import math

from torch import Tensor

from kdx.attention.interfaces import KernelFunction, upcast


class StudentT(KernelFunction):
    """Student's t with one degree of freedom."""

    name = "student-t"
    formula = "k(q, k) = 1 / (1 + |q - k|² / √D)"
    source = "of t-SNE, van der Maaten and Hinton 2008"
    gives = "weight"
    positive_semi_definite = True

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        # The square may be expanded: next to the 1, the digits that a small distance loses do not count.
        query_norm, key_norm = (upcast(x).square().sum(-1, keepdim=True) for x in (query, key))
        inner = (-2 * query) @ key.transpose(-2, -1)
        distance = (inner + query_norm + key_norm.transpose(-2, -1)).clamp(min=0)
        return 1 / (1 + distance / math.sqrt(query.size(-1)))
