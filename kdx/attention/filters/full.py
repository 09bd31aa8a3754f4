"""Every query sees every key."""

from torch import Tensor

from kdx.attention.interfaces import FilterFunction


class Full(FilterFunction):
    """M(x_q, S) = S."""

    limits = False

    def visible(self, query: Tensor, key: Tensor) -> None:
        return None
