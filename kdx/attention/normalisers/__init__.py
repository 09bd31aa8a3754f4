"""What a row of weights is divided by."""

from kdx.attention.interfaces import NormaliserFunction
from kdx.attention.normalisers.length import Length
from kdx.attention.normalisers.row_sum import RowSum
from kdx.axes import Normaliser

NORMALISERS: dict[Normaliser, type[NormaliserFunction]] = {
    Normaliser.ROW_SUM: RowSum,
    Normaliser.LENGTH: Length,
}
