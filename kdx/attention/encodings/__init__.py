"""t, the vector of an absolute position: modules that map integers (…, T) to (…, T, M)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.words.family import Family, PartDefinition

if TYPE_CHECKING:
    from kdx.attention.interfaces import AbsoluteEncoding


@dataclass(frozen=True)
class EncodingDefinition(PartDefinition):
    """See `kdx.attention.interfaces.AbsoluteEncoding`."""

    even: str
    bounded: bool


ENCODINGS: "Family[AbsoluteEncoding, EncodingDefinition]" = Family(
    "encoding",
    EncodingDefinition,
    "kdx.attention.interfaces:AbsoluteEncoding",
)
