"""Value functions (Sec. 2.2.3 of Tsai et al. 2019)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.words.family import ComponentDefinition, Family

if TYPE_CHECKING:
    from kdx.attention.interfaces import ValueFunction


@dataclass(frozen=True)
class ValueDefinition(ComponentDefinition):
    """See `kdx.attention.interfaces.ValueFunction`."""

    spaces: tuple[str, ...]
    uses_vector: bool
    uses_weights: bool
    of_distance: bool
    turns_pairs: bool


VALUES: "Family[ValueFunction, ValueDefinition]" = Family(
    "value",
    ValueDefinition,
    "kdx.attention.interfaces:ValueFunction",
)
