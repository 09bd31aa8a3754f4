"""How positions enter the kernel (Sec. 2.2.2 and 2.3 of Tsai et al. 2019; beyond it, from ALiBi on).

Several schemes may act together. `none` is the absence of a scheme and needs no class.
"""

from kdx.attention.interfaces import PositionScheme
from kdx.attention.positions.alibi import ALiBi
from kdx.attention.positions.direct_sum import DirectSum
from kdx.attention.positions.kerple import KERPLELog, KERPLEPower
from kdx.attention.positions.lookup import Lookup
from kdx.attention.positions.product import Product
from kdx.attention.positions.relative import Relative
from kdx.attention.positions.rotary import Rotary
from kdx.attention.positions.t5 import T5
from kdx.axes import Position

POSITIONS: dict[Position, type[PositionScheme]] = {
    Position.DIRECT_SUM: DirectSum,
    Position.LOOKUP: Lookup,
    Position.RELATIVE: Relative,
    Position.PRODUCT: Product,
    Position.ALIBI: ALiBi,
    Position.T5: T5,
    Position.KERPLE_LOG: KERPLELog,
    Position.KERPLE_POWER: KERPLEPower,
    Position.ROTARY: Rotary,
}
