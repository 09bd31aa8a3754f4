"""Sinusoids of a position, sines and cosines interleaved, for any integer position.

t[2p] = sin(pos / 10000^(2p/M)),  t[2p+1] = cos(pos / 10000^(2p/M))          [Vaswani et al. 2017, Sec. 3.5]
"""

import torch
from torch import Tensor, nn


class Sinusoidal(nn.Module):
    """A function of the position, computed and not stored; it has no parameters and no last position.

    Args:
        width: M, even.
        longest: not used; every encoding takes it.

    Raises:
        ValueError: if the width is odd.
    """

    like: Tensor

    def __init__(self, width: int, longest: int) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"width: sinusoids come in pairs, not {width}; allowed: an even number")
        self.width = width
        # Follows the module to its number format. The frequencies themselves would lose digits on the way to float64.
        self.register_buffer("like", torch.empty(0), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Integers (…, T) to (…, T, M)."""
        exact = torch.promote_types(self.like.dtype, torch.float32)
        exponent = torch.arange(0, self.width, 2, device=positions.device, dtype=exact) / self.width
        angle = positions.unsqueeze(-1) * 10000.0**-exponent
        return torch.stack((angle.sin(), angle.cos()), -1).flatten(-2).to(self.like.dtype)
