"""The temperature of the kernels that are exponentials of a distance or a product over √D."""

from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import KernelFunction, Settings
from kdx.words import option


class Tempered(KernelFunction):
    """A kernel with a temperature."""

    temperature: float | str = option(1.0, above=0, also=("learned",))
    """T; the logarithm of the weight is divided by T√D. learned: one for each head, starting at 1 (Kundu et al.
    2026)."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        if self.temperature == "learned":
            self.log_temperature = nn.Parameter(torch.zeros(settings.heads, 1, 1))

    def tempered(self, log_weight: Tensor) -> Tensor:
        """Return a log-weight, or the queries of its dot product, over T: (B, H, …, …) to (B, H, …, …)."""
        if isinstance(self.temperature, str):
            return (log_weight * (-self.log_temperature).exp()).to(log_weight.dtype)
        return log_weight if self.temperature == 1 else log_weight / self.temperature
