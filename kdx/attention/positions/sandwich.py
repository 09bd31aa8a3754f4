"""The inner product of two sinusoids, of positions only, as the logarithm of a factor.

r_h = 8h/H, h = 1 … H, distinguishes the heads, like the slopes of ALiBi. The term of distance 0 is the largest. Here p
counts from 0, as in the sinusoids of Vaswani et al. 2017; in the implementation of NVIDIA's NeMo it counts from 1.
"""

from typing import Any

import torch
from torch import Tensor

from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.interfaces import Settings
from kdx.attention.positions.by_distance import ByDistance
from kdx.words import option


class Sandwich(ByDistance):
    """A weight that falls, in waves, with the distance, as the product of two sinusoids does."""

    name = "sandwich"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(Σ_p cos((i - j) / 10000^(p/n)) / r_h), p = 0 … n - 1"
    source = "Chi et al. 2023"
    frequencies: int = option(64, minimum=1)
    """n, the number of cosines in the bias: half of d̄ of Chi et al. 2023."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.sinusoid = Sinusoidal(2 * self.frequencies, settings.max_positions)
        self.heads = settings.heads

    def bias(self, distance: Tensor) -> Tensor:
        product = self.sinusoid(distance)[..., 1::2].sum(-1)
        head = torch.arange(1, self.heads + 1, dtype=product.dtype, device=product.device)
        return product / (8.0 / self.heads * head).view(-1, *[1] * distance.dim())
