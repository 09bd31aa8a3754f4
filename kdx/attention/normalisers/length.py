"""The number of keys that the query sees, so that weights need not sum to one (Wortsman et al. 2023)."""

from torch import Tensor

from kdx.attention.interfaces import NormaliserFunction, number_of_keys


class Length(NormaliserFunction):
    """The number of keys that the query sees."""

    name = "length"
    formula = "|M(x_q, S)|"
    source = "Wortsman et al. 2023"
    cancels = False

    def total(self, weight: Tensor, visible: Tensor | None) -> Tensor:
        return number_of_keys(weight, visible)
