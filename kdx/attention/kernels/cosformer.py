"""Rectified features, with a weight that falls with the distance like a cosine.

cos(a - b) = cos a cos b + sin a sin b, so the kernel stays a dot product of features. M is the same for all rows, where
Qin et al. take the length of the row; so a token's weight does not depend on the number of tokens after it. The output
of a query that is similar to no key is 0.
"""

import math
from typing import Any

import torch
from torch import Tensor

from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.interfaces import KernelFunction, Settings, Side, TokenPositions, extremes
from kdx.words import option


class CosFormer(KernelFunction):
    """Dot product of rectified features, times a cosine of the distance."""

    name = "cosformer"
    formula = "k(q, k) = ⟨max(q, 0), max(k, 0)⟩ cos(π (i - j) / 2M)"
    source = "Qin et al. 2022, Eq. 10"
    gives = "weight"
    sees_positions = True
    widens = 2
    positive_semi_definite = True
    blind_to_query_norm = True
    horizon: int = option(1024, minimum=1)
    """M, the distance at which the weight is 0; larger distances are not allowed."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.angle = Angle(self.horizon)

    def placed(self, projected: Tensor, place: TokenPositions) -> Tensor:
        farthest = max(map(abs, extremes(place.positions) or (0,)))
        if farthest > self.horizon:
            raise ValueError(f"positions: {farthest} is beyond the horizon; allowed: 0 to {self.horizon}")
        sine, cosine = self.angle(place.positions).unsqueeze(-3).split(1, -1)  # (…, 1, T, 1)
        features = projected.relu()
        return torch.cat([features * cosine, features * sine], -1).to(projected.dtype)

    def feature_map(self, features: Tensor, side: Side) -> Tensor:
        return features

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-2, -1)


class Angle(Sinusoidal):
    """Sine and cosine of one angle, which is a right angle at the horizon."""

    def __init__(self, horizon: int) -> None:
        super().__init__(2, max_positions=1)
        self.horizon = horizon

    def frequencies(self, device: torch.device) -> Tensor:
        """Return the angle from one position to the next, in radians: (1,)."""
        return super().frequencies(device) * (math.pi / (2 * self.horizon))
