"""Set Transformer (Lee et al. 2019): self-attention without positions over the elements of a set, then a sum."""

from torch import Tensor, nn

from kdx.attention.spaces.set import SetAttention
from kdx.data.corpora.synthetic_sets import FEATURES, MOST, PAIRS
from kdx.grid.spec import CellSpec
from kdx.models.transformer import Stack, features_of, initialise, linear_of
from kdx.vocabulary import Attention


class SetModel(nn.Module):
    """Maps the elements of a set to the logits of its class.

    Lee et al. pool by attention to a learned vector. A sum, as in Zaheer et al. 2017, leaves every comparison of
    elements to the layers before it, so it shows how mixers differ.
    """

    def __init__(self, spec: CellSpec) -> None:
        super().__init__()
        self.input = linear_of(FEATURES, spec.model.width)
        self.encoder = Stack(spec, spec.model.encoder_layers, Attention.ENCODER_SELF, attention=set_attention_of)
        self.output = linear_of(spec.model.width, PAIRS + 1)
        initialise(self, spec.model.initialisation)

    def forward(self, elements: Tensor, padding: Tensor) -> Tensor:
        """elements (B, T, F), padding (B, T) True where there is none → logits (B, 1, V)."""
        x = self.encoder(self.input(elements), padding=padding)
        return self.output(x.masked_fill(padding[:, :, None], 0.0).sum(1, keepdim=True) / MOST)


def set_attention_of(spec: CellSpec, which: Attention) -> nn.Module:
    """Return the cell's attention without positions."""
    return SetAttention(spec.model.width, spec.model.heads, **features_of(spec))
