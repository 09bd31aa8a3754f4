"""How positions enter the kernel (Sec. 2.2.2 and 2.3 of Tsai et al. 2019; beyond it, from ALiBi on).

Several schemes may act together. `none` is the absence of a scheme and needs no class.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.definitions import Family, PartDefinition

if TYPE_CHECKING:
    from kdx.attention.interfaces import PositionScheme


@dataclass(frozen=True)
class PositionDefinition(PartDefinition):
    """See `kdx.attention.interfaces.PositionScheme`."""

    spaces: tuple[str, ...]
    even: str
    uses_vector: bool
    weighs: bool
    past_only: bool


POSITIONS: "Family[PositionScheme, PositionDefinition]" = Family(
    "position",
    PositionDefinition,
    "kdx.attention.interfaces:PositionScheme",
    {
        "direct-sum": "kdx.attention.positions.direct_sum:DirectSum",
        "lookup": "kdx.attention.positions.lookup:Lookup",
        "relative": "kdx.attention.positions.relative:Relative",
        "product": "kdx.attention.positions.product:Product",
        "alibi": "kdx.attention.positions.alibi:ALiBi",
        "t5": "kdx.attention.positions.t5:T5",
        "kerple-log": "kdx.attention.positions.kerple:KERPLELog",
        "kerple-power": "kdx.attention.positions.kerple:KERPLEPower",
        "rotary": "kdx.attention.positions.rotary:Rotary",
        "xpos": "kdx.attention.positions.xpos:XPos",
        "fire": "kdx.attention.positions.fire:FIRE",
        "sandwich": "kdx.attention.positions.sandwich:Sandwich",
        "forgetting": "kdx.attention.positions.forgetting:Forgetting",
        "cope": "kdx.attention.positions.cope:CoPE",
    },
)
