"""Direct sum of features and position, inside the attention.

Since it is taken in each layer, for queries and keys only, values are free of t (Eq. 8), which a sum at the input of
the stack cannot achieve.
"""

from torch import Tensor

from kdx.attention.interfaces import PositionScheme, TokenPositions


class DirectSum(PositionScheme):
    """Position added to the features."""

    name = "direct-sum"
    formula = "k(x_q, x_k) = k_F(f_q + t_q, f_k + t_k)"
    source = "Tsai et al. 2019, Eq. 4"
    takes = ("inject", "encoding")
    spaces = ("sequence", "image", "multimodal", "crossmodal")
    uses_vector = True
    weighs = False
    absolute = True

    def features(self, features: Tensor, place: TokenPositions) -> Tensor:
        return features + place.vector
