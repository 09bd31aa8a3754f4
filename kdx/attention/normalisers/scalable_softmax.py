"""Scalable-softmax: a softmax whose temperature falls with the number of keys, so that long rows stay as sharp.

n is the number of keys that the query sees. s_h starts at 0.43, the value of Nakanishi's Figure 1.
"""

from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import NormaliserFunction, Settings, number_of_keys, upcast


class ScalableSoftmax(NormaliserFunction):
    """The row sum of weights to the power of s_h log n."""

    name = "scalable-softmax"
    formula = "w ← w(x_q, x_k)^(s_h log n) / Σ_k w(x_q, x_k)^(s_h log n)"
    source = "Nakanishi 2025"
    kernels = ("logarithm",)
    cancels = True
    divides = False

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.scale = nn.Parameter(torch.full((settings.heads,), 0.43))

    def weights(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor:
        assert log_weight is not None and weight is None
        log_weight = upcast(log_weight)
        log_weight = log_weight * (self.scale[:, None, None] * number_of_keys(log_weight, visible).log())
        if visible is None:
            return log_weight.softmax(-1)
        hidden = log_weight.masked_fill(~visible, torch.finfo(log_weight.dtype).min)
        return hidden.softmax(-1).masked_fill(~visible, 0.0)
