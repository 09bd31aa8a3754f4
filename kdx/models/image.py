"""Image Transformer (Parmar et al. 2018): a decoder over the pixels of an image, row by row, with attention C only."""

import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.spaces.image import ImageAttention
from kdx.data.corpora.synthetic_images import LEVELS, SIDE
from kdx.grid.placement import positions_in
from kdx.grid.spec import CellSpec
from kdx.models import transformer
from kdx.models.transformer import Input, Stack, embedding_of, initialise, linear_of, parts_of
from kdx.vocabulary import Attention, Space


class ImageModel(nn.Module):
    """Maps pixels to the logits of each pixel, given the pixels before it in raster order."""

    def __init__(self, spec: CellSpec) -> None:
        super().__init__()
        # Id 0 is the input before the first pixel.
        self.input = Input(spec, embedding_of(1 + LEVELS, spec.model.width))
        self.decoder = Stack(spec, spec.model.decoder_layers, Attention.DECODER_SELF, attention=_attention_of)
        self.output = linear_of(spec.model.width, LEVELS)
        initialise(self, spec.model.initialisation)

    def forward(self, pixels: Tensor) -> Tensor:
        """Grey levels (B, T) → logits (B, T, V)."""
        return self.output(self.decoder(self.input(F.pad(1 + pixels[:, :-1], (1, 0)))))


def _attention_of(spec: CellSpec, which: Attention) -> nn.Module:
    if spec.space is Space.SEQUENCE:
        return transformer.attention_of(spec, which)
    parts = parts_of(spec, which)
    parts["max_positions"] = SIDE
    return ImageAttention(
        spec.model.width, spec.model.heads, columns=SIDE, positions=positions_in(spec, which), **parts
    )
