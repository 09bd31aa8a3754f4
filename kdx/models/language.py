"""Decoder-only Transformer for sequence prediction: the next token of a stream, with attention C only."""

from torch import Tensor, nn

from kdx.grid.spec import CellSpec
from kdx.models.dropout import Dropout
from kdx.models.memory import Memory
from kdx.models.transformer import Input, Stack, embedding_of, initialise, output_of
from kdx.vocabulary import Attention, Embeddings


class LanguageModel(nn.Module):
    """Maps the tokens of a stream to the logits of the token after each."""

    def __init__(self, spec: CellSpec, vocabulary_size: int) -> None:
        super().__init__()
        embedding = embedding_of(vocabulary_size, spec.model.width)
        self.input = Input(spec, embedding)
        self.decoder = Stack(spec, spec.model.decoder_layers, Attention.DECODER_SELF)
        tied = None if spec.model.embeddings is Embeddings.SEPARATE else embedding
        self.dropout = Dropout(spec.model.output_dropout)
        self.output = output_of(vocabulary_size, spec.model.width, tied, spec.model.cutoffs)
        initialise(self, spec.model.initialisation)

    def hidden(self, tokens: Tensor, memory: Memory | None = None) -> Tensor:
        """tokens (B, T) → (B, T, M). A memory of earlier tokens is read, and then updated with these tokens."""
        hidden: Tensor = self.dropout(self.decoder(self.input(tokens), memory=memory))
        return hidden

    def forward(self, tokens: Tensor, memory: Memory | None = None) -> Tensor:
        """tokens (B, T) → logits (B, T, V); memory as in `hidden`."""
        return self.output(self.hidden(tokens, memory))
