"""What the two sparse patterns of Child et al. 2019 share: l, and whether they reach beyond the query."""

from kdx.attention.interfaces import FilterFunction
from kdx.words import option


class Sparse(FilterFunction):
    """A pattern with a stride; in a decoder it reaches back only."""

    stride: int = option(16, minimum=1)
    """l, in tokens: how near a key must be, or how long a block is; of strided also the step between farther keys."""
