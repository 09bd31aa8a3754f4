"""The arguments of `KernelAttention` that a feature space leaves as they are: described, and refused, there."""

from collections.abc import Iterable
from typing import Literal, TypedDict

from kdx.attention.interfaces import AbsoluteEncoding, FilterFunction, KernelFunction, NormaliserFunction, ValueFunction
from kdx.vocabulary import Reach, Symmetry, Tables, XLBias


class Parts(TypedDict, total=False):
    """Those that have to do with features alone, in every space."""

    kernel: str | type[KernelFunction]
    symmetry: Symmetry
    normaliser: str | type[NormaliserFunction] | None
    head_width: int | None
    bias: bool
    dropout: float
    path: Literal["fused", "literal"]


class PlacedParts(Parts, total=False):
    """And, in spaces whose tokens stand somewhere, those that have to do with positions."""

    value: str | type[ValueFunction]
    filter: str | type[FilterFunction]
    encoding: str | type[AbsoluteEncoding] | None
    max_positions: int
    clip: int | None
    tables: Tables
    xl_bias: XLBias | None
    position_dropout: float
    stride: int
    summary: int
    reach: Reach


def check(given: Iterable[str], parts: type[TypedDict]) -> None:  # type: ignore[valid-type]
    """Refuse what a space that computes the kernel itself would leave out.

    Raises:
        ValueError: an argument that is not among those parts.
    """
    listed = parts.__annotations__
    for name in given:
        if name not in listed:
            raise ValueError(f"{name}: not in this space; allowed: {', '.join(listed)}")
