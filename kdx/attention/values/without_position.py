"""Values free of position: v(x_k) = f_k W_v          [Tsai et al. 2019, Eq. 8]"""

from kdx.attention.interfaces import ValueFunction


class WithoutPosition(ValueFunction):
    """f W_v."""
