"""One added to the row sum, so that a query may look at nothing: a sink of weight 1, whose value is 0."""

import torch
from torch import Tensor

from kdx.attention.normalisers.row_sum import RowSum


class SoftmaxPlusOne(RowSum):
    """The row sum and 1."""

    formula = "1 + Σ_k w(x_q, x_k)"
    source = "Miller 2023, Attention Is Off By One"
    kernels = ("logarithm", "weight")

    def sink(self) -> Tensor:
        return torch.zeros(())
