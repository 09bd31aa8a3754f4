"""Position schemes: how positions enter the kernel (Sec. 2.2.2 and 2.3 of Tsai et al. 2019; others from ALiBi on).

Several schemes may act together. `none` is the absence of a scheme and needs no class.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.words.family import ComponentDefinition, Family

if TYPE_CHECKING:
    from kdx.attention.interfaces import PositionScheme


@dataclass(frozen=True)
class PositionDefinition(ComponentDefinition):
    """See `kdx.attention.interfaces.PositionScheme`."""

    spaces: tuple[str, ...]
    even: str
    uses_vector: bool
    weighs: bool
    past_only: bool
    absolute: bool


POSITIONS: "Family[PositionScheme, PositionDefinition]" = Family(
    "position",
    PositionDefinition,
    "kdx.attention.interfaces:PositionScheme",
)
