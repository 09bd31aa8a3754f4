"""Values that turn as rotary positions turn keys, so that a sum of them depends on distances.

Each value turns by its own position, and the sum turns back by the query's: what is left of a value has turned by the
distance. The angles are those of `rotary` at its defaults.
"""

from typing import Any

from torch import Tensor

from kdx.attention.interfaces import Settings, TokenPositions, ValueFunction
from kdx.attention.positions.rotary import Rotary


class RotaryValue(ValueFunction):
    """Features, turned by the distance."""

    name = "rotary"
    formula = "v(x_q, x_k) = R_(j-i) f_k W_v, R_n the rotation of rotary positions by n"
    source = "RoVE, arXiv 2606.11275, 2026"
    spaces = ("sequence",)
    of_distance = True
    turns_pairs = True

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.rotation = Rotary(settings)

    def projected(self, value: Tensor, at_key: TokenPositions) -> Tensor:
        return self.rotation.projected(value, at_key)

    def smoothed(self, smoothed: Tensor, at_query: TokenPositions) -> Tensor:
        return self.rotation.projected(smoothed, TokenPositions(-at_query.positions, None))
