"""Rotation of queries and keys by their positions, so that their dot product sees the distance."""

from typing import Any

import torch
from torch import Tensor

from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.interfaces import PositionScheme, Settings, TokenPositions


class Rotary(PositionScheme):
    """A rotation of what the kernel compares; no factor.

    Raises:
        ValueError: if D is odd.
    """

    formula = "features 2p and 2p + 1 of a head turn by the angle pos / 10000^(2p/D)"
    source = "Su et al. 2021"
    even = "head_width"
    weighs = False

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        if settings.head_width % 2:
            raise ValueError(f"head_width: a rotation turns pairs, not {settings.head_width}; allowed: an even number")
        self.sinusoid = Sinusoidal(settings.head_width, settings.max_positions)

    def projected(self, projected: Tensor, place: TokenPositions) -> Tensor:
        angles = self.sinusoid(place.positions).unsqueeze(-3)  # (…, 1, T, D)
        sine, cosine = angles[..., 0::2], angles[..., 1::2]
        even, odd = projected[..., 0::2], projected[..., 1::2]
        turned = torch.stack([even * cosine - odd * sine, odd * cosine + even * sine], -1)
        return turned.flatten(-2).to(projected.dtype)
