"""Kernels on the non-positional features: those of Table 2 of Tsai et al. 2019, then others."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.words.family import ComponentDefinition, Family

if TYPE_CHECKING:
    from kdx.attention.interfaces import KernelFunction


@dataclass(frozen=True)
class KernelDefinition(ComponentDefinition):
    """See `kdx.attention.interfaces.KernelFunction`."""

    normaliser: str
    gives: str
    sees_positions: bool
    positive_semi_definite: bool
    blind_to_query_norm: bool


KERNELS: "Family[KernelFunction, KernelDefinition]" = Family(
    "kernel",
    KernelDefinition,
    "kdx.attention.interfaces:KernelFunction",
)
