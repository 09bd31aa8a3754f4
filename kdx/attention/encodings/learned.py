"""A learned vector for each position, as in Ott et al. 2019."""

from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import AbsoluteEncoding, extremes


class Learned(AbsoluteEncoding):
    """A table of positions 0 to max_positions - 1, drawn from N(0, 1/M).

    Args:
        width: M.
        max_positions: number of positions.
    """

    name = "learned"
    formula = "t = a row of a learned table"
    source = "Ott et al. 2019"
    bounded = True

    def __init__(self, width: int, max_positions: int, **options: Any) -> None:
        super().__init__(width, max_positions, **options)
        self.weight = nn.Parameter(torch.empty(max_positions, width))
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, positions: Tensor) -> Tensor:
        """Integers (…, T) to (…, T, M).

        Raises:
            ValueError: if a position is not in the table. On a GPU, where a check would wait, the look-up fails.
        """
        last = len(self.weight) - 1
        for position in extremes(positions) or ():
            if not 0 <= position <= last:
                raise ValueError(
                    f"positions: {position} is not in the learned table; allowed: 0 to {last} (`max_positions`)"
                )
        return self.weight[positions]
