"""Conditionally positive definite kernels of the distance, whose exponential is a positive definite kernel.

a and p are learned for each head and at least 0.01, as smooth functions of the parameters, where Chi et al. clip. Their
initial values are as in the code of Chi et al.: a uniform between 0 and 1, p uniform between 0 and 2, each
plus the 0.01.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.interfaces import Settings
from kdx.attention.positions.by_distance import ByDistance

LEAST = 0.01


class KERPLE(ByDistance):
    """The base class of both kernels, with their parameters."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.scale = nn.Parameter(_inverse_softplus(_drawn(settings)))
        self.power = nn.Parameter(self._power_that_gives(2 * _drawn(settings)))

    def _power_that_gives(self, p: Tensor) -> Tensor:
        """Return the parameter that gives p, to which the least value is added."""
        return _inverse_softplus(p)

    def _each(self, values: Tensor, distance: Tensor) -> Tensor:
        return (LEAST + values).view(-1, *[1] * distance.dim())


class KERPLELog(KERPLE):
    """A weight that falls with the logarithm of the distance, at a learned rate."""

    name = "kerple-log"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(-p log(1 + a |i - j|))"
    source = "Chi et al. 2022"

    def bias(self, distance: Tensor) -> Tensor:
        a, p = (self._each(F.softplus(raw), distance) for raw in (self.scale, self.power))
        return -p * (a * distance.abs()).log1p()


class KERPLEPower(KERPLE):
    """A weight that falls with a learned power of the distance."""

    name = "kerple-power"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(-a |i - j|^p), p ≤ 2"
    source = "Chi et al. 2022"

    def _power_that_gives(self, p: Tensor) -> Tensor:
        return (p / 2).logit()

    def bias(self, distance: Tensor) -> Tensor:
        a = self._each(F.softplus(self.scale), distance)
        p = self._each((2 - LEAST) * self.power.sigmoid(), distance)
        return -a * distance.abs().to(p.dtype).pow(p)


def _drawn(settings: Settings) -> Tensor:
    """Draw a number between 0 and 1 for each head, (H,); never 0, which no parameter gives."""
    return torch.rand(settings.heads).clamp(min=torch.finfo(torch.float32).eps)


def _inverse_softplus(value: Tensor) -> Tensor:
    return value.expm1().log()
