"""One added to the row sum, so that a query may look at nothing: a sink of weight 1, whose value is 0."""

from typing import Any

import torch
from torch import Tensor

from kdx.attention.interfaces import Settings
from kdx.attention.normalisers.row_sum import RowSum


class SoftmaxPlusOne(RowSum):
    """The row sum and 1."""

    name = "softmax-plus-one"
    formula = "1 + Σ_k w(x_q, x_k)"
    source = "Miller 2023, Attention Is Off By One"
    kernels = ("logarithm", "weight")

    log_one: Tensor

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.register_buffer("log_one", torch.zeros(()), persistent=False)

    def sink(self) -> Tensor:
        return self.log_one
