"""Transformer-XL's recurrence (Dai et al. 2019, Sec. 3.2): the inputs of each layer before the current segment."""

import torch
from torch import Tensor


class Memory:
    """The newest `length` tokens that each layer has read, without their gradients."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.layers: list[Tensor] = []
        """Inputs (B, Tm, M) of each layer, Tm at most `length`; empty before the first segment."""

    def renew(self, layer: int, x: Tensor) -> Tensor | None:
        """Return the layer's inputs before x (B, T, M), None at the beginning, and add x to the memory."""
        before = self.layers[layer] if layer < len(self.layers) else None
        read = x.detach() if before is None else torch.cat([before, x.detach()], 1)
        self.layers[layer : layer + 1] = [read[:, -self.length :]]
        return before
