"""Values free of position: v(x_k) = f_k W_v          [Tsai et al. 2019, Eq. 8]"""

from torch import Tensor

from kdx.attention.contracts import Place, ValueFunction


class WithoutPosition(ValueFunction):
    """f W_v."""

    uses_vector = False

    def features(self, features: Tensor, place: Place) -> Tensor:
        return features
