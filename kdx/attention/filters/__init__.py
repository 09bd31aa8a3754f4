"""Set filtering functions M(x_q, S) (Sec. 2.2.4 of Tsai et al. 2019). The padding is taken away from each."""

from kdx.attention.filters.causal import Causal
from kdx.attention.filters.fixed import Fixed
from kdx.attention.filters.full import Full
from kdx.attention.filters.strided import Strided
from kdx.attention.interfaces import FilterFunction
from kdx.axes import Filter

FILTERS: dict[Filter, type[FilterFunction]] = {
    Filter.FULL: Full,
    Filter.CAUSAL: Causal,
    Filter.STRIDED: Strided,
    Filter.FIXED: Fixed,
}
