"""A learned function of the distance in proportion to the position of the query.

Up to position L the proportion is to L, and beyond it to the position, so the input stays in the range that was
learned. ψ's c and L are learned, as are the weights of f_θ: one input, 32 rectified units, one output for each head. c
starts at 0.1. Both stay positive as exponentials of parameters, where the code of Li et al. takes absolute values. For
a key after the query the distance is |i - j|, in proportion to the later of the two positions, which Li et al. do not
need.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention.distances import pair_distances
from kdx.attention.interfaces import PositionScheme, Settings, TokenPositions, upcast
from kdx.words import option

UNITS = 32
SCALE = 0.1


class FIRE(PositionScheme):
    """A learned function of the distance in proportion to the position."""

    name = "fire"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(f_θ(ψ(i - j) / ψ(max(i, L)))), ψ(x) = log(1 + c x)"
    source = "Li et al. 2024"
    absolute = True
    threshold: float = option(512.0, above=0)
    """The initial value of L, in tokens; L is learned."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.log_scale = nn.Parameter(torch.tensor(math.log(SCALE)))
        self.log_threshold = nn.Parameter(torch.tensor(math.log(self.threshold)))
        self.hidden = nn.Linear(1, UNITS)
        self.output = nn.Linear(UNITS, settings.heads)

    def log_weight(self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        # Half precision cannot distinguish near distances in a long row.
        with torch.autocast(query.device.type, enabled=False):
            later = torch.maximum(at_query.positions.unsqueeze(-1), at_key.positions.unsqueeze(-2))
            longest = torch.maximum(later, upcast(self.log_threshold).exp())
            proportion = self._psi(pair_distances(at_query, at_key).abs()) / self._psi(longest)
            units = self.hidden(proportion.unsqueeze(-1).to(self.hidden.weight.dtype)).relu()
            bias: Tensor = self.output(units)  # (…, Tq, Tk, H)
        return bias.movedim(-1, -3)

    def _psi(self, distance: Tensor) -> Tensor:
        return (upcast(self.log_scale).exp() * distance).log1p()
