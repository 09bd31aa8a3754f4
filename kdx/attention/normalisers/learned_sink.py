"""A learned weight for each head, added to the row sum: a sink whose value is 0.

The weight starts at 1, which is softmax-plus-one.
"""

from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import Settings
from kdx.attention.normalisers.row_sum import RowSum


class LearnedSink(RowSum):
    """The row sum and a learned weight for each head."""

    name = "learned-sink"
    formula = "exp(s_h) + Σ_k w(x_q, x_k)"
    source = "gpt-oss, OpenAI 2025"
    kernels = ("logarithm", "weight")

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.log_weight = nn.Parameter(torch.zeros(settings.heads))

    def sink(self) -> Tensor:
        return self.log_weight[:, None, None]
