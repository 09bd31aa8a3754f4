"""Stick-breaking: from the latest key on, each takes a share of what the keys after it have left.

Recent keys come first by construction, so no position scheme is needed. The keys of a query are those that the filter
shows, its own among them; in Tan et al. the last is the one before it, unless `attend_current` is set in their code.
What the earliest key leaves goes to no key: a row sums to less than one.
"""

import torch.nn.functional as F
from torch import Tensor

from kdx.attention.interfaces import NormaliserFunction, upcast
from kdx.attention.running_sum import running_sum


class StickBreaking(NormaliserFunction):
    """The share of each key in what later keys have left."""

    name = "stick-breaking"
    formula = "w ← β_k Π_(k < l ≤ q) (1 - β_l), β = σ(log w(x_q, x_k))"
    source = "Tan et al. 2024"
    kernels = ("logarithm",)
    cancels = False
    divides = False
    past_only = True

    def weights(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor:
        assert log_weight is not None and weight is None
        log_weight = upcast(log_weight)
        left = F.logsigmoid(-log_weight)
        if visible is not None:
            left = left.masked_fill(~visible, 0.0)
        later = F.pad(running_sum(left[..., 1:].flip(-1), -1).flip(-1), (0, 1))
        weights = (F.logsigmoid(log_weight) + later).exp()
        return weights if visible is None else weights.masked_fill(~visible, 0.0)
