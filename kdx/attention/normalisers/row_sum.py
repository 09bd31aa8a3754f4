"""The row sum, raw and with its sign: Eq. 2 of Tsai et al. 2019."""

from torch import Tensor

from kdx.attention.interfaces import NormaliserFunction


class RowSum(NormaliserFunction):
    """The raw row sum, with its sign.

    A row whose sum is 0, for example because all weights are 0, is left as it is."""

    name = "row-sum"
    formula = "Σ_k w(x_q, x_k)"
    source = "Tsai et al. 2019, Eq. 2"
    cancels = True

    def total(self, weight: Tensor, visible: Tensor | None) -> Tensor:
        total = weight.sum(-1, keepdim=True)
        return total.masked_fill(total == 0, 1.0)
