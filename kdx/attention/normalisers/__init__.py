"""What a row of weights is divided by."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.definitions import Definition, Family

if TYPE_CHECKING:
    from kdx.attention.interfaces import NormaliserFunction


@dataclass(frozen=True)
class NormaliserDefinition(Definition):
    """See `kdx.attention.interfaces.NormaliserFunction`."""

    cancels: bool


NORMALISERS: "Family[NormaliserFunction, NormaliserDefinition]" = Family(
    "normaliser",
    NormaliserDefinition,
    {
        "row-sum": "kdx.attention.normalisers.row_sum:RowSum",
        "length": "kdx.attention.normalisers.length:Length",
    },
)
