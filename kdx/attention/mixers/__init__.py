"""Context mixers: layers that tell a token of the others, and may stand where self-attention stands in a block.

All take `forward(x, query_positions=…, key_padding=…, cache=…)` with x (B, T, M), as `KernelAttention` does for
self-attention. Attention weighs the others by their features; the two simpler ones weigh them alike, or by distance.
"""

from typing import Any

from kdx.attention.mixers.convolution import Convolution
from kdx.attention.mixers.equivariant import Equivariant
from kdx.axes import Mixer

# Those that know no space; attention's own module depends on it.
MIXERS: dict[Mixer, Any] = {
    Mixer.EQUIVARIANT: Equivariant,
    Mixer.CONVOLUTION: Convolution,
}
