"""The sigmoid of each log-weight, independent of the others: sigmoid attention.

Factors of positions are inside the sigmoid. The bias makes the weights of a row start with a sum near 1 at any length.
n is the number of keys that the query sees, where Ramapuram et al. take the length of the row; so a query's output does
not depend on keys that it does not see.
"""

from torch import Tensor

from kdx.attention.interfaces import NormaliserFunction, number_of_keys, upcast
from kdx.words import option


class Sigmoid(NormaliserFunction):
    """The sigmoid of each log-weight, and no divisor."""

    name = "sigmoid"
    formula = "w ← σ(log w(x_q, x_k) + b), b = -log n"
    source = "Ramapuram et al. 2024"
    kernels = ("logarithm",)
    cancels = False
    divides = False
    sigmoid_bias: str = option("length", words=("length", "none"))
    """b: -log n, with n the keys that the query sees, or none."""

    def weights(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor:
        assert log_weight is not None and weight is None
        log_weight = upcast(log_weight)
        if self.sigmoid_bias == "length":
            log_weight = log_weight - number_of_keys(log_weight, visible).log()
        weights = log_weight.sigmoid()
        return weights if visible is None else weights.masked_fill(~visible, 0.0)
