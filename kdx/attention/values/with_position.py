"""Values that carry the position of their token."""

from torch import Tensor

from kdx.attention.interfaces import TokenPositions, ValueFunction


class WithPosition(ValueFunction):
    """Features and position."""

    name = "with-position"
    formula = "v(x_k) = (f_k + t_k) W_v"
    source = "Tsai et al. 2019, Eq. 7"
    takes = ("encoding",)
    uses_vector = True

    def features(self, features: Tensor, place: TokenPositions) -> Tensor:
        return features + place.vector
