"""Values free of position."""

from kdx.attention.interfaces import ValueFunction


class WithoutPosition(ValueFunction):
    """Features alone."""

    name = "without-position"
    formula = "v(x_k) = f_k W_v"
    source = "Tsai et al. 2019, Eq. 8"
    spaces = ("sequence", "image", "set", "multimodal", "crossmodal", "graph")
