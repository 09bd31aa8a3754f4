"""Encoder–decoder Transformer for translation (Vaswani et al. 2017) with the cell's attentions A, B and C."""

import torch
from torch import Tensor, nn

from kdx.attention import Cache
from kdx.axes import Attention, Embeddings
from kdx.data.vocabulary import BEGIN, END, PADDING
from kdx.grid.spec import CellSpec
from kdx.models.transformer import Input, Stack, embedding_of, initialise, output_of


class TranslationModel(nn.Module):
    """Source and target tokens to the logits of the next target token."""

    def __init__(self, spec: CellSpec, vocabulary_size: int, source_size: int | None = None) -> None:
        """`vocabulary_size` is that of the target, and of the source too unless `source_size` says another."""
        super().__init__()
        width, embeddings = spec.model.width, spec.model.embeddings
        target = embedding_of(vocabulary_size, width)
        source = target if embeddings is Embeddings.SHARED else embedding_of(source_size or vocabulary_size, width)
        self.source_input = Input(spec, source)
        self.target_input = Input(spec, target)
        self.encoder = Stack(spec, spec.model.encoder_layers, Attention.ENCODER_SELF)
        self.decoder = Stack(spec, spec.model.decoder_layers, Attention.DECODER_SELF, across=Attention.ENCODER_DECODER)
        self.output = output_of(vocabulary_size, width, None if embeddings is Embeddings.SEPARATE else target)
        initialise(self, spec.model.initialisation)

    def encode(self, source: Tensor, source_padding: Tensor) -> Tensor:
        """source (B, Ts), source_padding (B, Ts) True where padding → (B, Ts, M)."""
        return self.encoder(self.source_input(source), padding=source_padding)

    def hidden(self, source: Tensor, source_padding: Tensor, target: Tensor) -> Tensor:
        """What the last layer gives at each of target (B, Tt): (B, Tt, M).

        Target padding lies to the right, where no causal query sees it.
        """
        memory = self.encode(source, source_padding)
        return self.decoder(self.target_input(target), source=memory, source_padding=source_padding)

    def forward(self, source: Tensor, source_padding: Tensor, target: Tensor) -> Tensor:
        """Logits (B, Tt, V) of the token after each of target (B, Tt)."""
        return self.output(self.hidden(source, source_padding, target))

    @torch.no_grad()
    def translate(self, source: Tensor, source_padding: Tensor, longest: int) -> list[list[int]]:
        """Greedy translations: token ids without the end mark, at most `longest` each.

        Sentences that have ended leave the batch, so its cost follows what is still open.
        """
        memory = self.encode(source, source_padding)
        rows = torch.arange(source.shape[0])
        caches = [(Cache(), Cache()) for _ in range(len(self.decoder.layers))]
        tokens = torch.full((source.shape[0], 1), BEGIN, device=source.device)
        translations: list[list[int]] = [[] for _ in range(source.shape[0])]
        for step in range(longest):
            inputs = self.target_input(tokens, torch.tensor([step], device=source.device))
            hidden = self.decoder(inputs, source=memory, source_padding=source_padding, caches=caches)
            logits = self.output(hidden[:, -1])
            logits[:, [PADDING, BEGIN]] = -torch.inf
            tokens = logits.argmax(-1, keepdim=True)
            for row, token in zip(rows.tolist(), tokens[:, 0].tolist(), strict=True):
                if token != END:
                    translations[row].append(token)
            kept = (tokens[:, 0] != END).nonzero()[:, 0]
            if not len(kept):
                break
            if len(kept) < len(rows):
                rows, tokens = rows[kept.cpu()], tokens[kept]
                memory, source_padding = memory[kept], source_padding[kept]
                for own, across in caches:
                    own.select(kept)
                    across.select(kept)
        return translations
