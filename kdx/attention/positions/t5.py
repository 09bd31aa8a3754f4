"""Buckets of distances, with a learned bias for each bucket and head.

Each side of the query has 16 buckets of one distance, then 16 that widen geometrically up to distance 128 and beyond.
For keys not after the query these are the buckets of T5's decoder; its encoder has half as many on a side.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import Settings
from kdx.attention.positions.by_distance import ByDistance

BUCKETS = 32
FARTHEST = 128


class T5(ByDistance):
    """A learned bias for each bucket of distances and head."""

    name = "t5"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(b_(bucket of i - j))"
    source = "Raffel et al. 2020"

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.weight = nn.Parameter(torch.empty(settings.heads, 2 * BUCKETS))
        nn.init.normal_(self.weight, std=settings.head_width**-0.5)

    def bias(self, distance: Tensor) -> Tensor:
        away, exact = distance.abs(), BUCKETS // 2
        # In 64 bits, so that a distance on a boundary falls on the same side on every machine.
        octaves = (away.clamp(min=exact).double() / exact).log() / math.log(FARTHEST / exact)
        wide = (exact + (octaves * (BUCKETS - exact)).long()).clamp(max=BUCKETS - 1)
        bucket = torch.where(away < exact, away, wide)
        return self.weight[:, bucket + BUCKETS * (distance > 0)]
