"""What a row of weights is divided by."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.definitions import Family, PartDefinition

if TYPE_CHECKING:
    from kdx.attention.interfaces import NormaliserFunction


@dataclass(frozen=True)
class NormaliserDefinition(PartDefinition):
    """See `kdx.attention.interfaces.NormaliserFunction`."""

    cancels: bool


NORMALISERS: "Family[NormaliserFunction, NormaliserDefinition]" = Family(
    "normaliser",
    NormaliserDefinition,
    "kdx.attention.interfaces:NormaliserFunction",
    {
        "row-sum": "kdx.attention.normalisers.row_sum:RowSum",
        "length": "kdx.attention.normalisers.length:Length",
    },
)
