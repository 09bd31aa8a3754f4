"""Normalisers, which turn a kernel's row into weights: a divisor, or a function of the whole row."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.words.family import ComponentDefinition, Family

if TYPE_CHECKING:
    from kdx.attention.interfaces import NormaliserFunction


@dataclass(frozen=True)
class NormaliserDefinition(ComponentDefinition):
    """See `kdx.attention.interfaces.NormaliserFunction`."""

    kernels: tuple[str, ...]
    cancels: bool
    divides: bool
    past_only: bool


NORMALISERS: "Family[NormaliserFunction, NormaliserDefinition]" = Family(
    "normaliser",
    NormaliserDefinition,
    "kdx.attention.interfaces:NormaliserFunction",
)
