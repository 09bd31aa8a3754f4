"""Set filtering functions M(x_q, S) (Sec. 2.2.4 of Tsai et al. 2019). Padding is always removed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.words.family import ComponentDefinition, Family

if TYPE_CHECKING:
    from kdx.attention.interfaces import FilterFunction


@dataclass(frozen=True)
class FilterDefinition(ComponentDefinition):
    """See `kdx.attention.interfaces.FilterFunction`."""

    spaces: tuple[str, ...]
    sees_later: bool
    triangular: bool


FILTERS: "Family[FilterFunction, FilterDefinition]" = Family(
    "filter",
    FilterDefinition,
    "kdx.attention.interfaces:FilterFunction",
)
