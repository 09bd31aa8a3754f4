"""Kernel feature spaces X, at the level of the attention module (Sec. 2.2.1 of Tsai et al. 2019).

A space says what a token is: features F, and where it stands. Each is built around `KernelAttention` and takes its
words for kernel, symmetry and path.
"""

from enum import StrEnum

from torch import nn

from kdx.attention.module import KernelAttention
from kdx.attention.spaces.graph import GraphAttention
from kdx.attention.spaces.image import ImageAttention
from kdx.attention.spaces.multimodal import CrossmodalAttention, MultimodalAttention
from kdx.attention.spaces.set import SetAttention


class Space(StrEnum):
    """F × T, F × H × W, F, F^l × F^v × F^a × T as one product or in pairs, and F on a labelled graph (Shaw et al.)."""

    SEQUENCE = "sequence"
    IMAGE = "image"
    SET = "set"
    MULTIMODAL = "multimodal"
    CROSSMODAL = "crossmodal"
    GRAPH = "graph"


SPACES: dict[Space, type[nn.Module]] = {
    Space.SEQUENCE: KernelAttention,
    Space.IMAGE: ImageAttention,
    Space.SET: SetAttention,
    Space.MULTIMODAL: MultimodalAttention,
    Space.CROSSMODAL: CrossmodalAttention,
    Space.GRAPH: GraphAttention,
}
