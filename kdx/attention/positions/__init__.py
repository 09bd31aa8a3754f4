"""How positions enter the kernel (Sec. 2.2.2 and 2.3 of Tsai et al. 2019). Several schemes may act together.

`none` is the absence of a scheme and needs no class.
"""

from kdx.attention.contracts import PositionScheme
from kdx.attention.positions.direct_sum import DirectSum
from kdx.attention.positions.product import Product
from kdx.axes import Position

POSITIONS: dict[Position, type[PositionScheme]] = {
    Position.DIRECT_SUM: DirectSum,
    Position.PRODUCT: Product,
}
