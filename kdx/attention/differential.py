"""Differential attention: the difference of two attention maps, in which the weights of irrelevant keys cancel.

(w(q₁, k₁) - λ w(q₂, k₂)) v          [Ye et al. 2024, Eq. 1]

A head's queries and keys are two halves of D / 2 features, each with a separate map over the head's values, which are D
wide; so there are as many parameters as with one map. Kernel, positions and normaliser treat each map as a head. The
result is normalised in each head and multiplied by 1 - λ_init, so its gradients are those of one map.
"""

import math

import torch
from torch import Tensor, nn

MAPS = 2
EPSILON = 1e-5


class Differential(nn.Module):
    """λ = exp(⟨a₁, b₁⟩) - exp(⟨a₂, b₂⟩) + λ_init, and the normalisation of each head (Ye et al. 2024, Eq. 2 and 3).

    Args:
        head_width: D, the width of the values.
    """

    def __init__(self, head_width: int) -> None:
        super().__init__()
        # a₁, b₁, a₂, b₂
        self.lambdas = nn.ParameterList(0.1 * torch.randn(head_width // MAPS) for _ in range(4))
        self.norm = nn.RMSNorm(head_width, EPSILON)
        self.initial = 0.8
        """λ_init; 0.8, its limit, if the depth of the layer is unknown."""

    def set_depth(self, depth: int) -> None:
        """Set λ_init = 0.8 - 0.6 exp(-0.3 (depth - 1)), where depth counts layers from 1."""
        self.initial = 0.8 - 0.6 * math.exp(-0.3 * (depth - 1))

    @property
    def factor(self) -> Tensor:
        """Return λ, ()."""
        first, second, third, fourth = self.lambdas
        return (first @ second).exp() - (third @ fourth).exp() + self.initial

    def difference(self, maps: Tensor) -> Tensor:
        """Return the difference of the outputs of each head's two maps, given side by side: (B, 2H, …) to (B, H, …)."""
        first, second = maps.unflatten(1, (-1, MAPS)).unbind(2)  # type: ignore[no-untyped-call]
        return first - self.factor.to(maps.dtype) * second

    def normalised(self, smoothed: Tensor) -> Tensor:
        """Return the heads' output, (B, H, Tq, D), normalised and scaled."""
        return (1 - self.initial) * self.norm(smoothed)
