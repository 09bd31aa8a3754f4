"""The base class of the two sparse patterns of Child et al. 2019: the stride l, and the reach."""

from kdx.attention.interfaces import FilterFunction
from kdx.words import option


class Sparse(FilterFunction):
    """A pattern with a stride; in a decoder it reaches back only."""

    stride: int = option(16, minimum=1)
    """l, in tokens: the reach of near keys, or the length of a block; for strided, also the step between far keys."""
