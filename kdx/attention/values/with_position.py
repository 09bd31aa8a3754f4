"""Values with position: v(x_k) = (f_k + t_k) W_v          [Tsai et al. 2019, Eq. 7]"""

from torch import Tensor

from kdx.attention.interfaces import TokenPositions, ValueFunction


class WithPosition(ValueFunction):
    """(f + t) W_v."""

    uses_vector = True

    def features(self, features: Tensor, place: TokenPositions) -> Tensor:
        return features + place.vector
