"""Context mixers: layers that tell a token of the others, and may stand where self-attention stands in a block.

Attention weighs the others by their features; the two simpler ones weigh them alike, or by distance.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.words.family import ComponentDefinition, Family

if TYPE_CHECKING:
    from kdx.attention.interfaces import ContextMixer


@dataclass(frozen=True)
class MixerDefinition(ComponentDefinition):
    """See `kdx.attention.interfaces.ContextMixer`."""

    spaces: tuple[str, ...]
    filters: tuple[str, ...]
    remembers: bool


MIXERS: "Family[ContextMixer, MixerDefinition]" = Family(
    "mixer",
    MixerDefinition,
    "kdx.attention.interfaces:ContextMixer",
)
