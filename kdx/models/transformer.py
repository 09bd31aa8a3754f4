"""The stacks that both tasks share: attention and feed-forward sublayers with residual sums (Vaswani et al. 2017)."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from kdx.attention import Cache, KernelAttention
from kdx.attention.differential import Differential
from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.interfaces import PositionScheme
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.data.vocabulary import PADDING
from kdx.grid.layers import LayerName
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.grid.placement import filter_in, positions_in, value_in
from kdx.grid.sections import Model
from kdx.grid.spec import CellSpec
from kdx.models.dropout import Dropout
from kdx.models.memory import Memory
from kdx.models.softmax import AdaptiveSoftmax, FullSoftmax
from kdx.vocabulary import (
    Attention,
    Bias,
    FeedForwardKind,
    Initialisation,
    Inject,
    Norm,
    Normalisation,
    Reach,
)
from kdx.words.family import Definition
from kdx.words.option import options_of

EPSILON = 1e-5
"""The constant that normalisations add to the mean square; torch's default for RMSNorm depends on the number format."""


def features_of(spec: CellSpec) -> dict[str, Any]:
    """Return the arguments of `KernelAttention` that describe how features are compared, in every space."""
    normaliser = spec.normaliser or KERNELS.definition(spec.kernel).normaliser
    return {
        "kernel": spec.kernel,
        "symmetry": spec.symmetry,
        "normaliser": spec.normaliser,
        "qk_norm": spec.qk_norm,
        "kv_heads": spec.kv_heads,
        "value_projection": spec.value_projection,
        "output_gate": spec.output_gate,
        "projection": spec.projection,
        "smoother": spec.smoother,
        "maps": spec.maps,
        "bias": spec.model.bias is Bias.LEARNED,
        **_options(spec, [KERNELS.definition(spec.kernel), NORMALISERS.definition(normaliser)]),
    }


def parts_of(spec: CellSpec, which: Attention) -> dict[str, Any]:
    """Return the arguments of `features_of` and those for positions, filter and value, for one of three attentions."""
    value, filter, positions = value_in(spec, which), filter_in(spec, which), positions_in(spec, which)
    words = [VALUES.definition(value), FILTERS.definition(filter), *map(POSITIONS.definition, positions)]
    words += [ENCODINGS.definition(spec.encoding)] if spec.encoding else []
    return {
        **features_of(spec),
        "value": value,
        "filter": filter,
        "encoding": spec.encoding,
        "max_positions": MAX_POSITIONS,
        # Only a decoder must not see later tokens.
        "reach": Reach.PAST if which is Attention.DECODER_SELF else Reach.BOTH,
        **_options(spec, words),
    }


def _options(spec: CellSpec, words: Iterable[Definition]) -> dict[str, Any]:
    """Return the cell's choices of the options that these names have."""
    return {option.name: spec.option(option.name) for known in words for option in known.options}


def attention_of(spec: CellSpec, which: Attention) -> KernelAttention:
    """Return one of the cell's three attentions, for sequences."""
    return KernelAttention(
        spec.model.width,
        spec.model.heads,
        positions=positions_in(spec, which),
        # The larger of both, so that a token has the same position in training and in an evaluation.
        memory_length=max(spec.memory, spec.evaluation.memory or 0),
        **parts_of(spec, which),
    )


AttentionOf = Callable[[CellSpec, Attention], nn.Module]


def mixer_of(spec: CellSpec, which: Attention, attention: AttentionOf) -> nn.Module:
    """Return the mixer of a self-attention: the attention of the space, unless the cell has another mixer."""
    if spec.mixer == "attention":
        return attention(spec, which)
    own = _options(spec, [MIXERS.definition(spec.mixer)])
    mixer: Callable[..., nn.Module] = MIXERS[spec.mixer]
    return mixer(spec.model.width, filter=filter_in(spec, which), **own)


def normalisation_of(model: Model) -> nn.LayerNorm | nn.RMSNorm:
    """Return the cell's normalisation of a token's features, with gain 1 and bias, if it has one, 0.

    layer: (x - mean) / √(variance + ε) · gain + bias (Ba et al. 2016); rms: x / √(mean of x² + ε) · gain (Zhang &
    Sennrich 2019).
    """
    if model.normalisation is Normalisation.RMS:
        return nn.RMSNorm(model.width, EPSILON)
    return nn.LayerNorm(model.width, EPSILON, bias=model.normalisation_bias is Bias.LEARNED)


class Residual(nn.Module):
    """x + dropout(f(x)), normalised after the sum (post) or before f (pre)."""

    def __init__(self, spec: CellSpec) -> None:
        super().__init__()
        self.norm = normalisation_of(spec.model)
        self.dropout = Dropout(spec.model.dropout)
        self.pre = spec.norm is Norm.PRE

    def inner(self, x: Tensor) -> Tensor:
        """Return the input of f."""
        return self.norm(x) if self.pre else x

    def outer(self, x: Tensor, change: Tensor) -> Tensor:
        """Return the residual sum, given f's output as `change`."""
        total = x + self.dropout(change)
        return total if self.pre else self.norm(total)


class FeedForward(nn.Module):
    """dropout(f(x)) W2 + b2, position by position.

    f(x) = max(0, x W1 + b1) (Vaswani et al. 2017), GELU(x W1 + b1) (Hendrycks & Gimpel 2016, not its approximation), or
    SwiGLU's SiLU(x W + b) ⊙ (x W1 + b1) (Shazeer 2020, with β = 1), where W is `gate`. All matrices are initialised
    Xavier-uniform, all biases with zero.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        bias = model.feed_forward_bias is Bias.LEARNED
        self.kind = model.feed_forward
        self.up = nn.Linear(model.width, model.inner, bias)
        self.down = nn.Linear(model.inner, model.width, bias)
        gated = self.kind is FeedForwardKind.SWIGLU
        self.gate = nn.Linear(model.width, model.inner, bias) if gated else None
        self.dropout = Dropout(model.inner_dropout)
        for linear in (self.up, self.down, self.gate):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight)
                if bias:
                    nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, M) → (B, T, M)."""
        inner = self.up(x)
        if self.gate is not None:
            inner = functional.silu(self.gate(x)) * inner
        else:
            inner = torch.relu(inner) if self.kind is FeedForwardKind.RELU else functional.gelu(inner)
        return self.down(self.dropout(inner))


class Layer(nn.Module):
    """Self-attention in the cell's space, attention over a source if there is one, and the feed-forward sublayer."""

    def __init__(
        self,
        spec: CellSpec,
        self_attention: Attention,
        cross_attention: Attention | None = None,
        attention: AttentionOf = attention_of,
    ) -> None:
        super().__init__()
        self.self_attention = mixer_of(spec, self_attention, attention)
        self.self_attention_residual = Residual(spec)
        if cross_attention:
            self.cross_attention = attention_of(spec, cross_attention)
            self.cross_attention_residual = Residual(spec)
        self.attentions = {"self_attention": self_attention, "cross_attention": cross_attention}
        self.feed_forward = FeedForward(spec.model)
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
        edges: Tensor | None = None,
    ) -> Tensor:
        """x (B, T, M), padding (B, T) True where hidden, source (B, Ts, M) → (B, T, M).

        When decoding token by token, `caches` keep the keys of earlier tokens, and x continues where they end. In a
        stream, `remembered` (B, Tm, M) has this layer's inputs before x; in a graph, `edges` (B, T, T) has the labels.
        """
        self_cache, cross_cache = caches or (None, None)
        inner = self.self_attention_residual.inner(x)
        before = None if remembered is None else self.self_attention_residual.inner(remembered)
        others = {"cache": self_cache, "memory": before, "labels": edges}
        others = {name: value for name, value in others.items() if value is not None}
        change = self.self_attention(inner, key_padding=padding, **others)
        x = self.self_attention_residual.outer(x, change)
        if source is not None:
            inner = self.cross_attention_residual.inner(x)
            change = self.cross_attention(inner, source, key_padding=source_padding, cache=cross_cache)
            x = self.cross_attention_residual.outer(x, change)
        return self.feed_residual.outer(x, self.feed_forward(self.feed_residual.inner(x)))


class Stack(nn.Module):
    """A stack of layers, with a final normalisation for pre-norm; all layers may share one pair u and v."""

    def __init__(
        self,
        spec: CellSpec,
        depth: int,
        self_attention: Attention,
        cross_attention: Attention | None = None,
        attention: AttentionOf = attention_of,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            Layer(spec.of_layer(LayerName.of(self_attention, number)), self_attention, cross_attention, attention)
            for number in range(1, depth + 1)
        )
        share_parameters(self)
        number_layers(self.layers)
        self.closing = normalisation_of(spec.model) if spec.norm is Norm.PRE else nn.Identity()

    def forward(
        self,
        x: Tensor,
        *,
        padding: Tensor | None = None,
        source: Tensor | None = None,
        source_padding: Tensor | None = None,
        caches: list[tuple[Cache, Cache]] | None = None,
        memory: Memory | None = None,
        edges: Tensor | None = None,
    ) -> Tensor:
        """See `Layer.forward`; `caches` has one pair per layer, and the memory is read and then updated."""
        for index, layer in enumerate(self.layers):
            remembered = memory.renew(index, x) if memory else None
            x = layer(
                x,
                padding=padding,
                source=source,
                source_padding=source_padding,
                caches=caches[index] if caches else None,
                remembered=remembered,
                edges=edges,
            )
        return self.closing(x)


def share_parameters(stack: nn.Module) -> None:
    """Share parameters that a position scheme has once for all layers, such as Transformer-XL's u and v."""
    first: dict[tuple[object, ...], PositionScheme] = {}
    for module in stack.modules():
        if isinstance(module, PositionScheme):
            # Layers may have one scheme with different options, or with heads of another shape.
            options = [getattr(module, option) for option in options_of(type(module))]
            shapes = [parameter.shape for parameter in module.parameters()]
            module.share(first.setdefault((type(module), *options, *shapes), module))


def number_layers(layers: nn.ModuleList) -> None:
    """Set the depth of each differential attention, counted from 1."""
    for depth, layer in enumerate(layers, 1):
        for module in layer.modules():
            if isinstance(module, Differential):
                module.set_depth(depth)


class Input(nn.Module):
    """Token embeddings times √M, plus positions if the direct sum is taken at the input (Eq. 4)."""

    def __init__(self, spec: CellSpec, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.scale = math.sqrt(spec.model.width)
        self.dropout = Dropout(spec.model.dropout)
        self.encoding: nn.Module | None = None
        if spec.inject is Inject.INPUT and spec.encoding is not None:
            self.encoding = ENCODINGS[spec.encoding](
                spec.model.width, MAX_POSITIONS, **_options(spec, [ENCODINGS.definition(spec.encoding)])
            )

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """tokens (B, T) → (B, T, M)."""
        x = self.embedding(tokens) * self.scale
        if self.encoding is not None:
            if positions is None:
                positions = torch.arange(tokens.shape[1], device=tokens.device)
            x = x + self.encoding(positions)
        return self.dropout(x)


def linear_of(inputs: int, outputs: int) -> nn.Linear:
    """Return a projection initialised Xavier-uniform, with bias zero."""
    linear = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


def embedding_of(size: int, width: int) -> nn.Embedding:
    """Return an embedding drawn from N(0, 1/M); the padding's vector is zero and gets no gradient as an input."""
    embedding = nn.Embedding(size, width, padding_idx=0)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    with torch.no_grad():
        embedding.weight[0].zero_()
    return embedding


def output_of(
    size: int, width: int, tied_to: nn.Embedding | None, cutoffs: tuple[int, ...] = ()
) -> FullSoftmax | AdaptiveSoftmax:
    """Return the output layer, which shares the matrix of the embedding `tied_to` if there is one."""
    return AdaptiveSoftmax(width, size, cutoffs, tied_to) if cutoffs else FullSoftmax(width, size, tied_to)


def initialise(model: nn.Module, initialisation: Initialisation) -> None:
    """Draw the initial weights again if the cell has `normal`, as Dai et al. 2019 do in their code.

    `normal`: gains of normalisations from N(1, 0.02²), every parameter of two or more dimensions from N(0, 0.02²), a
    learned temperature, a ridge and Hedgehog's map among them, and padding's vector zero. All others stay as they are.
    """
    if initialisation is Initialisation.XAVIER:
        return
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.RMSNorm):
            nn.init.normal_(module.weight, 1.0, 0.02)
        elif isinstance(module, nn.Embedding):
            nn.init.zeros_(module.weight[PADDING])
