"""What makes weights of a kernel's row: a divisor, or a function of the whole row."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.definitions import Family, PartDefinition

if TYPE_CHECKING:
    from kdx.attention.interfaces import NormaliserFunction


@dataclass(frozen=True)
class NormaliserDefinition(PartDefinition):
    """See `kdx.attention.interfaces.NormaliserFunction`."""

    kernels: tuple[str, ...]
    cancels: bool
    divides: bool


NORMALISERS: "Family[NormaliserFunction, NormaliserDefinition]" = Family(
    "normaliser",
    NormaliserDefinition,
    "kdx.attention.interfaces:NormaliserFunction",
    {
        "row-sum": "kdx.attention.normalisers.row_sum:RowSum",
        "length": "kdx.attention.normalisers.length:Length",
        "softmax-plus-one": "kdx.attention.normalisers.softmax_plus_one:SoftmaxPlusOne",
        "learned-sink": "kdx.attention.normalisers.learned_sink:LearnedSink",
        "sigmoid": "kdx.attention.normalisers.sigmoid:Sigmoid",
        "entmax": "kdx.attention.normalisers.entmax:Entmax",
    },
)
