"""Attention with linear biases: a weight that falls with the distance, at a fixed rate for each head.

The rates are the geometric series that Press et al. print for any number of heads (Sec. 3). For numbers that are not a
power of two their code has other rates: those for the next smaller power, and every other one of those for the next
larger power.

For keys that do not come after the query, |i - j| is i - j, whose term of the query cancels in the row sum. One column
of the keys is left.
"""

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor

from kdx.attention import columns
from kdx.attention.interfaces import DotProduct, Settings, TokenPositions
from kdx.attention.positions.by_distance import ByDistance


class ALiBi(ByDistance):
    """A weight that falls with the distance, at a fixed rate for each head."""

    name = "alibi"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(-m_h |i - j|), m_h = 2^(-8h/H), h = 1 … H"
    source = "Press et al. 2022, Sec. 3"

    slopes: Tensor

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.heads = settings.heads
        self.register_buffer("slopes", self._rates().float(), persistent=False)

    def _rates(self) -> Tensor:
        return 2.0 ** (-8.0 / self.heads * torch.arange(1, self.heads + 1, dtype=torch.float64))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # Computed again, since a module that is converted to double would keep the rounded rates.
        moved = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.slopes = self._rates().to(self.slopes)
        return moved

    def bias(self, distance: Tensor) -> Tensor:
        return -self.slopes.view(-1, *[1] * distance.dim()) * distance.abs()

    def dot_product(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions, past: bool
    ) -> DotProduct | None:
        if not past or query.size(-2) * at_key.positions.size(-1) <= columns.LARGEST_BIAS:
            return None
        # Counted from the middle, which halves the largest number and so its rounding.
        positions = at_key.positions - at_key.positions[..., at_key.positions.size(-1) // 2, None]
        return columns.of_keys(self.slopes[:, None] * positions.unsqueeze(-2), query)
