"""Context mixers: layers that pass information between tokens, and may replace self-attention in a block.

Attention weighs other tokens by their features; the two simpler mixers weigh them equally, or by distance.
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
