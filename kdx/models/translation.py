"""Encoder–decoder Transformer for translation (Vaswani et al. 2017) with the cell's attentions A, B and C."""

import torch
from torch import Tensor, nn

from kdx.attention import Cache
from kdx.grid.spec import CellSpec
from kdx.models.beam import Search, beam_search
from kdx.models.transformer import Input, Stack, embedding_of, initialise, output_of
from kdx.vocabulary import Attention, Embeddings

DECODED = 8192


class TranslationModel(nn.Module):
    """Maps source and target tokens to the logits of the next target token."""

    def __init__(self, spec: CellSpec, vocabulary_size: int, source_size: int | None = None) -> None:
        """Take the size of the target's vocabulary, and that of the source's if it has another."""
        super().__init__()
        width, embeddings = spec.model.width, spec.model.embeddings
        target = embedding_of(vocabulary_size, width)
        source = target if embeddings is Embeddings.SHARED else embedding_of(source_size or vocabulary_size, width)
        self.source_input = Input(spec, source)
        self.target_input = Input(spec, target)
        self.encoder = Stack(spec, spec.model.encoder_layers, Attention.ENCODER_SELF)
        self.decoder = Stack(
            spec, spec.model.decoder_layers, Attention.DECODER_SELF, cross_attention=Attention.ENCODER_DECODER
        )
        self.output = output_of(vocabulary_size, width, None if embeddings is Embeddings.SEPARATE else target)
        initialise(self, spec.model.initialisation)

    def encode(self, source: Tensor, source_padding: Tensor) -> Tensor:
        """source (B, Ts), source_padding (B, Ts) True where padding → (B, Ts, M)."""
        return self.encoder(self.source_input(source), padding=source_padding)

    def hidden(self, source: Tensor, source_padding: Tensor, target: Tensor) -> Tensor:
        """Return the last layer's output (B, Tt, M) at each token of target (B, Tt).

        Target padding is on the right, where no causal query sees it.
        """
        memory = self.encode(source, source_padding)
        return self.decoder(self.target_input(target), source=memory, source_padding=source_padding)

    def forward(self, source: Tensor, source_padding: Tensor, target: Tensor) -> Tensor:
        """Return the logits (B, Tt, V) of the token after each token of target (B, Tt)."""
        return self.output(self.hidden(source, source_padding, target))

    @torch.no_grad()
    def translate(self, source: Tensor, source_padding: Tensor, search: Search) -> list[list[int]]:
        """Return the best translations that beam search finds: token ids without the end mark.

        Sentences are decoded in groups of similar length, with at most `DECODED` source tokens × hypotheses, which
        bounds the memory. Finished sentences leave their group, so the cost of a step depends on the open ones only.
        """
        lengths = (~source_padding).sum(1)
        translations: list[list[int]] = [[] for _ in range(len(source))]
        for group in _groups(lengths.cpu(), DECODED // search.beam):
            longest = int(lengths[group].max())
            decoded = self._search(source[group, :longest], source_padding[group, :longest], search)
            for index, tokens in zip(group.tolist(), decoded, strict=True):
                translations[index] = tokens
        return translations

    def _search(self, source: Tensor, source_padding: Tensor, search: Search) -> list[list[int]]:
        memory = self.encode(source, source_padding)
        caches = [(Cache(), Cache()) for _ in range(len(self.decoder.layers))]

        def logits_after(tokens: Tensor, step: int) -> Tensor:
            inputs = self.target_input(tokens[:, None], torch.tensor([step], device=tokens.device))
            # The source is read at the first step; after that the caches have it.
            hidden = self.decoder(inputs, source=memory, source_padding=source_padding, caches=caches)
            return self.output(hidden[:, -1])

        def go_on_with(rows: Tensor, other_sentences: bool) -> None:
            for self_cache, cross_cache in caches:
                self_cache.select(rows)
                if other_sentences:
                    cross_cache.select(rows)

        return beam_search(logits_after, go_on_with, search.limits((~source_padding).sum(1)), search)


def _groups(lengths: Tensor, tokens: int) -> list[Tensor]:
    """Return groups of sentences with at most `tokens` tokens, padding included, or of one sentence.

    If all sentences fit into one group, they keep their order.
    """
    if len(lengths) * int(lengths.max()) <= tokens:
        return [torch.arange(len(lengths))]
    order = lengths.argsort(stable=True)
    cuts, start = [], 0
    for place, length in enumerate(lengths[order].tolist()):
        if place > start and length * (place + 1 - start) > tokens:
            cuts.append(place)
            start = place
    return list(order.tensor_split(cuts))
