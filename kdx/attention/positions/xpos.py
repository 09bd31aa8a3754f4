"""Rotation with a decay: queries are scaled with their position, and keys by the inverse.

ζ_p = (2p/R + 0.4) / 1.4 for the R features that turn, by pairs; the fast pairs decay most. The exponent is n / 512, as
in the code of Sun et al. The weight of keys after the query would grow with the distance. At about 35,000 tokens the
power of a position leaves the range of float32.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kdx.attention.interfaces import Settings, TokenPositions, upcast
from kdx.attention.positions.rotary import Rotations

LEAST = 0.4
TOKENS = 512


class XPos(Rotations):
    """A rotation of what the kernel compares, and a decay of each pair with the distance.

    Raises:
        ValueError: if D is odd, or the number of features that turn is.
    """

    name = "xpos"
    formula = (
        "features 2p and 2p + 1 turn as in rotary; of queries at n they are ζ_p^(n/512), of keys ζ_p^(-n/512) fold"
    )
    source = "Sun et al. 2023"
    spaces = ("sequence", "multimodal")
    past_only = True

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.still = settings.head_width - self.turning

    def query(self, query: Tensor, place: TokenPositions) -> Tensor:
        return (upcast(query) * self._power(place)).to(query.dtype)

    def key(self, key: Tensor, place: TokenPositions) -> Tensor:
        return (upcast(key) / self._power(place)).to(key.dtype)

    def _power(self, place: TokenPositions) -> Tensor:
        """Return ζ to the power of n / 512, and 1 for features that do not turn: (…, 1, T, D)."""
        exact = torch.promote_types(self.sinusoid.like.dtype, torch.float32)
        share = torch.arange(0, self.turning, 2, dtype=exact, device=place.positions.device) / self.turning
        each = ((share + LEAST) / (1 + LEAST)).log().repeat_interleave(2) / TOKENS
        return (place.positions.unsqueeze(-1) * F.pad(each, (0, self.still))).exp().unsqueeze(-3)
