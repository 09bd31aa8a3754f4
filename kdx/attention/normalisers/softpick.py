"""Softpick: a rectified numerator over a sum of absolute values, so that a row may sum to less than one.

A key whose log-weight is negative has no weight, and counts in the divisor all the same; no key needs to be a sink. A
row whose sum is 0 has no weights; Zuhri et al. add 1e-8 to every divisor instead.
"""

import torch
from torch import Tensor

from kdx.attention.interfaces import NormaliserFunction, upcast


class Softpick(NormaliserFunction):
    """Rectified weights over the absolute sum."""

    name = "softpick"
    formula = "w ← ReLU(w(x_q, x_k) - 1) / Σ_k |w(x_q, x_k) - 1|"
    source = "Zuhri et al. 2025"
    kernels = ("logarithm",)
    cancels = False
    divides = False

    def weights(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor:
        assert log_weight is not None and weight is None
        log_weight = upcast(log_weight)
        if visible is not None:
            log_weight = log_weight.masked_fill(~visible, 0.0)  # of which the difference from one is nothing
        largest = log_weight.detach().amax(-1, keepdim=True).clamp(min=0)
        above_one = (log_weight - largest).exp() - (-largest).exp()
        total = above_one.abs().sum(-1, keepdim=True)
        return above_one.relu() / torch.where(total == 0, 1.0, total)
