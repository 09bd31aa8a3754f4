"""Rotation of queries and keys by their positions, so that their dot product depends on the distance.

b is the base, R the number of features that turn, s the factor and L the original length, in tokens. A pair makes a
full turn in λ = 2π b^(2p/R) tokens. The angle by which pair p turns from one position to the next is:

none             θ_p = b^(-2p/R)
interpolation    θ_p / s                                                       [Chen et al. 2023]
ntk              θ_p with the base b s^(R/(R - 2))                             [NTK-aware; Peng et al. 2024, Sec. 3.1]
yarn             (1 - γ) θ_p / s + γ θ_p, γ = (L/λ_p - 1) / (32 - 1) in 0 … 1  [Peng et al. 2024, Sec. 3.2]

yarn also multiplies queries and keys by 0.1 ln s + 1, the root of its inverse temperature (Sec. 3.4 there). Its γ rises
with the number of turns L/λ_p, as printed; in the code of Peng et al. it rises with p, from the pair that turns once to
the pair that turns 32 times, both rounded outward.
"""

import math
from typing import Any

import torch
from torch import Tensor

from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.interfaces import PositionScheme, Settings, TokenPositions
from kdx.words import option

# Pairs that turn less often than `SLOWEST` within the original length are interpolated, pairs that turn more often than
# `FASTEST` are unchanged (α and β of Peng et al. 2024).
SLOWEST, FASTEST = 1.0, 32.0


class Rotations(PositionScheme):
    """The base class of schemes that turn features, with their options."""

    even = "head_width"
    weighs = False
    rotary_base: float = option(10000.0, above=1)
    """The base b of the angles' geometric series; a larger one makes the slow pairs slower."""
    rotary_share: float = option(1.0, above=0, maximum=1)
    """The share of a head's features that turn (the first ones); the others are independent of positions."""
    rotary_scaling: str = option("none", words=("none", "interpolation", "ntk", "yarn"))
    """How the angles are reduced for rows longer than in training: not; all equally (Chen et al. 2023); by a larger
    base (NTK-aware); or slow pairs only, with a temperature (YaRN, Peng et al. 2024)."""
    rotary_factor: float = option(1.0, minimum=1)
    """s, the factor by which rows are longer; has no effect without scaling."""
    original_length: int = option(512, minimum=1)
    """Number of tokens of a row before it is made longer, from which YaRN counts turns; has no effect otherwise."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        width = settings.head_width
        if width % 2:
            raise ValueError(f"head_width: a rotation turns pairs, not {width}; allowed: an even number")
        turning = width * self.rotary_share
        if turning != round(turning) or turning % 2:
            raise ValueError(
                f"rotary_share: {self.rotary_share} of {width} features is {turning:g}; allowed: an even number of them"
            )
        self.turning = int(turning)
        self.sinusoid = Angles(self, self.turning)
        self.temper = 0.1 * math.log(self.rotary_factor) + 1 if self.rotary_scaling == "yarn" else 1.0

    def projected(self, projected: Tensor, place: TokenPositions) -> Tensor:
        angles = self.sinusoid(place.positions).unsqueeze(-3)  # (…, 1, T, R)
        sine, cosine = angles[..., 0::2], angles[..., 1::2]
        turning, still = projected[..., : self.turning], projected[..., self.turning :]
        even, odd = turning[..., 0::2], turning[..., 1::2]
        turned = torch.stack([even * cosine - odd * sine, odd * cosine + even * sine], -1).flatten(-2)
        if still.size(-1):
            turned = torch.cat([turned, still.to(turned.dtype)], -1)
        return (turned if self.temper == 1 else self.temper * turned).to(projected.dtype)


class Rotary(Rotations):
    """A rotation of what the kernel compares, without a factor.

    Raises:
        ValueError: if D is odd, or the number of features that turn is.
    """

    name = "rotary"
    formula = "features 2p and 2p + 1 of a head turn by the angle pos / 10000^(2p/D)"
    source = "Su et al. 2021"


class Angles(Sinusoidal):
    """Sines and cosines of the angles by which the pairs of a head have turned."""

    def __init__(self, scheme: Rotations, turning: int) -> None:
        super().__init__(turning, max_positions=1)
        self.scaling, self.factor, self.length = scheme.rotary_scaling, scheme.rotary_factor, scheme.original_length
        self.base = scheme.rotary_base
        if self.scaling == "ntk" and turning > 2:
            self.base *= self.factor ** (turning / (turning - 2))

    def frequencies(self, device: torch.device) -> Tensor:
        """Return the angle by which each pair turns from one position to the next, in radians: (R / 2,)."""
        frequencies = super().frequencies(device)
        if self.scaling == "interpolation":
            return frequencies / self.factor
        if self.scaling == "yarn":
            turns = self.length * frequencies / (2 * math.pi)
            kept = ((turns - SLOWEST) / (FASTEST - SLOWEST)).clamp(0, 1)
            return (1 - kept) * frequencies / self.factor + kept * frequencies
        return frequencies
