"""FAVOR+: random features whose dot product is, on average, the exponential kernel.

Each head has its own directions ω, drawn once, in blocks of D that are orthogonal, each as long as a vector of D normal
numbers. They are not parameters: they are in the checkpoint and are never drawn again, where Choromanski et al. may
redraw them during training. Their code adds a constant to the features to avoid a row sum of 0; here nothing is added.
"""

import math
from typing import Any

import torch
from torch import Tensor

from kdx.attention.interfaces import Settings, upcast
from kdx.attention.kernels.exponential_features import ExponentialFeatures
from kdx.words import option


class FAVOR(ExponentialFeatures):
    """Dot product of positive orthogonal random features, which estimates the exponential kernel."""

    name = "favor"
    formula = "k(q, k) = ⟨φ(q), φ(k)⟩, φ(x)_r = exp(⟨ω_r, x'⟩ - |x'|² / 2) / √m, x' = x / D^(1/4)"
    source = "Performer, Choromanski et al. 2021, Lemma 1 and Sec. 2.4"
    positive_semi_definite = True
    random_features: int = option(128, minimum=1)
    """m, the number of random features."""

    directions: Tensor

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        drawn = [_directions(self.random_features, settings.head_width) for _ in range(settings.heads)]
        self.register_buffer("directions", torch.stack(drawn))

    def exponents(self, features: Tensor) -> Tensor:
        scaled = features / features.size(-1) ** 0.25
        along = scaled @ upcast(self.directions).transpose(-2, -1)
        return along - scaled.square().sum(-1, keepdim=True) / 2 - math.log(self.random_features) / 2


def _directions(count: int, width: int) -> Tensor:
    """Return the directions, (m, D)."""
    blocks = [_rotation(width) for _ in range(-(-count // width))]
    lengths = torch.randn(count, width).norm(dim=-1, keepdim=True)
    return lengths * torch.cat(blocks)[:count]


def _rotation(width: int) -> Tensor:
    """Return a matrix D × D of orthogonal unit vectors, uniformly distributed."""
    factors = torch.linalg.qr(torch.randn(width, width))
    # A factorisation chooses signs; with the signs of R the draw is uniform (Mezzadri 2007).
    return (factors.Q * factors.R.diagonal().sign()).T
