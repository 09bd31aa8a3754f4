"""Sinusoids of a position, sines and cosines interleaved, for any integer position.

The code of Ott et al. 2019 has the exponent p/(M/2 - 1) instead of 2p/M. It also puts all sines before all cosines and
counts positions from 2. Neither matters here: the order of features affects only the draw of the weights, and the
comparison of two sinusoids depends only on their distance.
"""

from typing import Any

import torch
from torch import Tensor

from kdx.attention.interfaces import AbsoluteEncoding
from kdx.words import option


class Sinusoidal(AbsoluteEncoding):
    """A function of the position, computed and not stored, without parameters and without a last position.

    Args:
        width: M, even.
        max_positions: not used, but every encoding takes it.

    Raises:
        ValueError: if the width is odd.
    """

    name = "sinusoidal"
    formula = "t[2p] = sin(pos / 10000^(2p/M)), t[2p+1] = cos(pos / 10000^(2p/M))"
    source = "Vaswani et al. 2017, Sec. 3.5"
    even = "width"
    sinusoids: str = option("vaswani", words=("vaswani", "fairseq"))
    """The exponents: 2p/M (Vaswani et al. 2017), or p/(M/2 - 1) (the code of Ott et al. 2019)."""

    base = 10000.0
    """The ratio of the wavelength after the last to the first (with fairseq's exponents, of the last to the first)."""
    like: Tensor

    def __init__(self, width: int, max_positions: int, **options: Any) -> None:
        super().__init__(width, max_positions, **options)
        if width % 2:
            raise ValueError(f"width: sinusoids come in pairs, not {width}; allowed: an even number")
        self.width = width
        # With two features there is one frequency, whose exponent is 0 by either rule.
        self.last = max(width - 2, 1) if self.sinusoids == "fairseq" else width
        # Gives the number format of the module. The frequencies themselves would lose digits in conversions.
        self.register_buffer("like", torch.empty(0), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Integers (…, T) to (…, T, M)."""
        angle = positions.unsqueeze(-1) * self.frequencies(positions.device)
        return torch.stack((angle.sin(), angle.cos()), -1).flatten(-2).to(self.like.dtype)

    def frequencies(self, device: torch.device) -> Tensor:
        """Return the angle by which each pair of features turns from one position to the next, in radians: (M / 2,)."""
        exact = torch.promote_types(self.like.dtype, torch.float32)
        exponent = torch.arange(0, self.width, 2, device=device, dtype=exact) / self.last
        frequencies: Tensor = self.base**-exponent
        return frequencies
