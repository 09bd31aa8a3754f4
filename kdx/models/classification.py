"""A Transformer encoder over a line of text, pooled to one vector, which predicts its label."""

from torch import Tensor, nn

from kdx.grid.spec import CellSpec
from kdx.models.transformer import Input, Stack, embedding_of, initialise, linear_of
from kdx.vocabulary import Attention


class ClassificationModel(nn.Module):
    """Maps the tokens of a line to the logits of its label."""

    def __init__(self, spec: CellSpec, vocabulary_size: int, labels: int) -> None:
        super().__init__()
        self.input = Input(spec, embedding_of(vocabulary_size, spec.model.width))
        self.encoder = Stack(spec, spec.model.encoder_layers, Attention.ENCODER_SELF)
        self.first = spec.option("pooling") == "first"
        self.output = linear_of(spec.model.width, labels)
        initialise(self, spec.model.initialisation)

    def forward(self, tokens: Tensor, padding: Tensor) -> Tensor:
        """tokens (B, T), padding (B, T) True where there is no token → logits (B, C)."""
        x = self.encoder(self.input(tokens), padding=padding)
        if self.first:
            return self.output(x[:, 0])
        present = (~padding)[:, :, None]
        return self.output((x * present).sum(1) / present.sum(1))
