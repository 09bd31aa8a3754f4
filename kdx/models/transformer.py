"""The stacks that both tasks share: attention and feed-forward sublayers with residual sums (Vaswani et al. 2017)."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from kdx.attention import Cache, KernelAttention
from kdx.attention.encodings import encoding_of
from kdx.attention.mixers import MIXERS
from kdx.attention.spaces.parts import Parts, PlacedParts
from kdx.axes import Attention, Inject, Mixer, Norm, Reach, Tables
from kdx.grid.spec import LONGEST, CellSpec
from kdx.models.memory import Memory


def features_of(spec: CellSpec) -> Parts:
    """What an attention of the cell compares features by, in every space."""
    return {"kernel": spec.kernel, "symmetry": spec.symmetry, "normaliser": spec.normaliser}


def parts_of(spec: CellSpec, which: Attention) -> PlacedParts:
    """And what it makes of positions, in one of the three places."""
    return PlacedParts(
        **features_of(spec),
        value=spec.value_in(which),
        filter=spec.filter_in(which),
        encoding=spec.encoding,
        longest=LONGEST,
        clip=None if spec.clip == "none" else spec.clip,
        tables=spec.sharing or Tables.PER_HEAD,
        xl_bias=spec.xl_bias,
        position_dropout=spec.position_dropout or 0.0,
        stride=spec.stride or 1,
        summary=spec.summary or 0,
        # Only a decoder must not see what comes after.
        reach=Reach.PAST if which is Attention.DECODER_SELF else Reach.BOTH,
    )


def attention_of(spec: CellSpec, which: Attention) -> KernelAttention:
    """The cell's attention in one of the three places, of a sequence."""
    return KernelAttention(
        spec.model.width,
        spec.model.heads,
        scale=spec.scale,
        positions=spec.positions_in(which),
        memory_length=spec.memory,
        **parts_of(spec, which),
    )


AttentionOf = Callable[[CellSpec, Attention], nn.Module]


def mixer_of(spec: CellSpec, which: Attention, attention: AttentionOf) -> nn.Module:
    """What stands in the place of self-attention: that of the space, unless the cell has another mixer."""
    if spec.mixer is Mixer.ATTENTION:
        return attention(spec, which)
    own = {} if spec.neighbours is None else {"neighbours": spec.neighbours}
    return MIXERS[spec.mixer](spec.model.width, filter=spec.filter_in(which), **own)


class Residual(nn.Module):
    """x + dropout(f(x)), normalised after the sum (post) or before f (pre)."""

    def __init__(self, spec: CellSpec) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(spec.model.width)
        self.dropout = nn.Dropout(spec.model.dropout)
        self.pre = spec.norm is Norm.PRE

    def inner(self, x: Tensor) -> Tensor:
        """What f reads."""
        return self.norm(x) if self.pre else x

    def outer(self, x: Tensor, change: Tensor) -> Tensor:
        """The sum, with f's output as `change`."""
        total = x + self.dropout(change)
        return total if self.pre else self.norm(total)


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, position by position."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        for linear in (self.up, self.down):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, M) → (B, T, M)."""
        return self.down(torch.relu(self.up(x)))


class Layer(nn.Module):
    """Self-attention in the cell's space, attention over a source where there is one, and the feed-forward sublayer."""

    def __init__(
        self, spec: CellSpec, own: Attention, across: Attention | None = None, attention: AttentionOf = attention_of
    ) -> None:
        super().__init__()
        self.own = mixer_of(spec, own, attention)
        self.own_residual = Residual(spec)
        if across:
            self.across = attention_of(spec, across)
            self.across_residual = Residual(spec)
        self.feed_forward = FeedForward(spec.model.width, spec.model.inner)
        self.feed_residual = Residual(spec)

    def forward(
        self,
        x: Tensor,
        *,
        padding: Tensor | None = None,
        source: Tensor | None = None,
        source_padding: Tensor | None = None,
        caches: tuple[Cache, Cache] | None = None,
        remembered: Tensor | None = None,
    ) -> Tensor:
        """x (B, T, M), padding (B, T) True where hidden, source (B, Ts, M) → (B, T, M).

        When decoding token by token, `caches` keep the keys of earlier tokens, and x goes on where they end. In a
        stream, `remembered` (B, Tm, M) is what this layer read before x.
        """
        own_cache, across_cache = caches or (None, None)
        inner = self.own_residual.inner(x)
        memory = {} if remembered is None else {"memory": self.own_residual.inner(remembered)}
        change = self.own(inner, key_padding=padding, cache=own_cache, **memory)
        x = self.own_residual.outer(x, change)
        if source is not None:
            inner = self.across_residual.inner(x)
            change = self.across(inner, source, key_padding=source_padding, cache=across_cache)
            x = self.across_residual.outer(x, change)
        return self.feed_residual.outer(x, self.feed_forward(self.feed_residual.inner(x)))


class Stack(nn.Module):
    """Layers one on another, with the pre-norm's closing normalisation."""

    def __init__(
        self,
        spec: CellSpec,
        depth: int,
        own: Attention,
        across: Attention | None = None,
        attention: AttentionOf = attention_of,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(spec, own, across, attention) for _ in range(depth))
        self.closing = nn.LayerNorm(spec.model.width) if spec.norm is Norm.PRE else nn.Identity()

    def forward(
        self,
        x: Tensor,
        *,
        padding: Tensor | None = None,
        source: Tensor | None = None,
        source_padding: Tensor | None = None,
        caches: list[tuple[Cache, Cache]] | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """As `Layer.forward`, with one pair of caches a layer; the memory is read and then renewed."""
        for index, layer in enumerate(self.layers):
            remembered = memory.renew(index, x) if memory else None
            x = layer(
                x,
                padding=padding,
                source=source,
                source_padding=source_padding,
                caches=caches[index] if caches else None,
                remembered=remembered,
            )
        return self.closing(x)


class Input(nn.Module):
    """Token embeddings times √M, plus the positions where the direct sum is taken at the input (Eq. 4)."""

    def __init__(self, spec: CellSpec, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.scale = math.sqrt(spec.model.width)
        self.dropout = nn.Dropout(spec.model.dropout)
        at_input = spec.inject is Inject.INPUT and spec.encoding is not None
        self.encoding = encoding_of(spec.encoding, spec.model.width, LONGEST) if at_input else None  # type: ignore[arg-type]

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """tokens (B, T) → (B, T, M)."""
        x = self.embedding(tokens) * self.scale
        if self.encoding is not None:
            if positions is None:
                positions = torch.arange(tokens.shape[1], device=tokens.device)
            x = x + self.encoding(positions)
        return self.dropout(x)


def linear_of(inputs: int, outputs: int) -> nn.Linear:
    """A projection that begins Xavier-uniform, its bias zero."""
    linear = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


def embedding_of(size: int, width: int) -> nn.Embedding:
    """Token vectors drawn from N(0, 1/M), the padding's zero; as an input it gets no gradient."""
    embedding = nn.Embedding(size, width, padding_idx=0)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    with torch.no_grad():
        embedding.weight[0].zero_()
    return embedding


def output_of(size: int, width: int, tied_to: nn.Embedding | None) -> nn.Linear:
    """Logits over the vocabulary; without bias, and the embedding's own matrix where the two are one."""
    output = nn.Linear(width, size, bias=False)
    if tied_to is None:
        nn.init.xavier_uniform_(output.weight)
    else:
        output.weight = tied_to.weight
    return output
