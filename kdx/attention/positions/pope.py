"""Polar positions: what a feature says is a length, where it stands is an angle, and neither changes the other.

Each feature c of a head becomes a pair of length softplus(feature) that turns by θ_c = 10000^(-c/D) a token, so the
kernel compares 2D features; they are multiplied by 2^¼, which makes their dot product over √(2D) the printed sum over
√D. Of kernels only the scaled dot product is that sum (unscaled, √2 times it); another compares the pairs in its own
way. δ starts at 0; the paper keeps it in -2π … 0, which the period of the cosine makes needless.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.interfaces import PositionScheme, Settings, Side, TokenPositions

_SCALE = 2**0.25


class PoPE(PositionScheme):
    """Features that are lengths, each with an angle that is the position's."""

    name = "pope"
    formula = "⟨q, k⟩ ← Σ_c softplus(q_c) softplus(k_c) cos((j - i) θ_c + δ_c), θ_c = 10000^(-c/D)"
    source = "Gopalakrishnan et al. 2025"
    spaces = ("sequence", "crossmodal")
    weighs = False
    widens = 2

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.sinusoid = Sinusoidal(2 * settings.head_width, max_positions=1)
        self.shift = nn.Parameter(torch.zeros(settings.heads, 1, settings.head_width))

    def compared(self, features: Tensor, place: TokenPositions, side: Side) -> Tensor:
        angles = self.sinusoid(place.positions).unsqueeze(-3)  # (…, 1, T, 2D)
        sine, cosine = angles[..., 0::2], angles[..., 1::2]
        if side is Side.QUERY:
            before, ahead = self.shift.sin(), self.shift.cos()
            sine, cosine = sine * ahead - cosine * before, cosine * ahead + sine * before
        length = _SCALE * F.softplus(features)
        return torch.cat([length * cosine, length * sine], -1).to(features.dtype)
