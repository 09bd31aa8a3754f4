"""Rotations whose angles are learned: a position acts by exp(n L), a product of turns in planes.

Each of the D/2 planes has a learned angle a token, from that of `rotary` on, the same in all heads, as in the code of
Zhang et al. The planes are pairs of features: other planes that commute are these after an orthogonal change of basis,
which the projections of queries and keys learn by themselves. With the angles of the start it is `rotary`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import Settings
from kdx.attention.positions.rotary import Angles, Rotations


class GrapeMultiplicative(Rotations):
    """A rotation of what the kernel compares, with learned angles.

    Raises:
        ValueError: if D is odd, or the number of features that turn is.
    """

    name = "grape-multiplicative"
    formula = "f ← exp(n L) f, L = Σ_p θ_p (e_2p+1 e_2pᵀ - e_2p e_2p+1ᵀ), θ_p learned"
    source = "Zhang et al. 2025"

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.sinusoid = LearnedAngles(self, self.turning)


class LearnedAngles(Angles):
    """Sines and cosines of learned angles, which stay positive."""

    def __init__(self, scheme: Rotations, turning: int) -> None:
        super().__init__(scheme, turning)
        self.log_frequency = nn.Parameter(super().frequencies(torch.device("cpu")).log())

    def frequencies(self, device: torch.device) -> Tensor:
        """Return the angle by which each pair turns from one position to the next, in radians: (R / 2,)."""
        return self.log_frequency.exp()
