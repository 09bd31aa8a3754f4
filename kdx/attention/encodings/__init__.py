"""Encodings of t, the vector of an absolute position: modules that map integers (…, T) to (…, T, M)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.words.family import ComponentDefinition, Family

if TYPE_CHECKING:
    from kdx.attention.interfaces import AbsoluteEncoding


@dataclass(frozen=True)
class EncodingDefinition(ComponentDefinition):
    """See `kdx.attention.interfaces.AbsoluteEncoding`."""

    even: str
    bounded: bool


ENCODINGS: "Family[AbsoluteEncoding, EncodingDefinition]" = Family(
    "encoding",
    EncodingDefinition,
    "kdx.attention.interfaces:AbsoluteEncoding",
)
