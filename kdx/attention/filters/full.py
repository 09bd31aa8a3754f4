"""Every query sees every key."""

from torch import Tensor

from kdx.attention.interfaces import FilterFunction


class Full(FilterFunction):
    """Every key."""

    name = "full"
    formula = "M(x_q, S) = S"
    source = "Tsai et al. 2019, Sec. 2.2.4"
    spaces = ("sequence", "image", "set", "multimodal", "crossmodal", "graph")
    sees_later = True
    limits = False

    def visible(self, query: Tensor, key: Tensor) -> None:
        return None
