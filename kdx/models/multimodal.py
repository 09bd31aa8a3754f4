"""Multimodal Transformer (Tsai et al., ACL 2019): streams of language, vision and audio, each with its own times.

In the spaces `multimodal` and `sequence` there is one row of tokens, one token for each time at which anything happens,
with the features of the three modalities side by side, zero where a modality is silent. The kernel is a product over
the modalities, or one kernel on all features. In the space `crossmodal` the streams stay apart, each a third as wide,
and attend to each other pair by pair. So `multimodal` and `crossmodal` have the same number of weights, except for
biases and positions.
"""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from kdx.attention.spaces.multimodal import Combine, CrossmodalAttention, MultimodalAttention
from kdx.data.corpora.synthetic_streams import EVERY, EXAMPLES, FEATURES, LONGEST, WORDS
from kdx.grid.layers import LayerName
from kdx.grid.placement import positions_in
from kdx.grid.spec import CellSpec
from kdx.models import transformer
from kdx.models.dropout import Dropout
from kdx.models.transformer import (
    FeedForward,
    Residual,
    Stack,
    embedding_of,
    initialise,
    linear_of,
    normalisation_of,
    number_layers,
    parts_of,
    share_parameters,
)
from kdx.vocabulary import Attention, Modality, Norm, Space

Streams = dict[Modality, Tensor]
_Residuals = Mapping[Modality, Residual]


class MultimodalModel(nn.Module):
    """Maps streams of the three modalities to the logits of their class, by the mean of each modality's features."""

    def __init__(self, spec: CellSpec) -> None:
        super().__init__()
        self.narrow = spec.model.width // len(Modality)
        self.words = embedding_of(1 + WORDS, self.narrow)
        self.frames = nn.ModuleDict({name: linear_of(FEATURES, self.narrow) for name in EVERY})
        self.dropout = Dropout(spec.model.dropout)
        crossmodal = spec.space is Space.CROSSMODAL
        self.encoder = CrossmodalStack(spec, self.narrow) if crossmodal else JointStack(spec)
        self.output = linear_of(spec.model.width, EXAMPLES.classes)
        initialise(self, spec.model.initialisation)

    def forward(self, **streams: Tensor) -> Tensor:
        """Return the logits (B, 1, V) for the events of each modality and, as `…_times`, their times.

        `language` (B, Tl) are words, `vision` (B, Tv, F) and `audio` (B, Ta, F) features; times are -1 for padding at
        the end, of any length. No modality has two tokens at one time.
        """
        times = {name: streams[f"{name}_times"] for name in Modality}
        features = {Modality.LANGUAGE: self.words(streams[Modality.LANGUAGE]) * self.narrow**0.5}
        features |= {name: self.frames[name](streams[name]) for name in EVERY}
        x = {name: self.dropout(features[name]).masked_fill((times[name] < 0)[:, :, None], 0.0) for name in Modality}
        return self.output(self.encoder(x, times)[:, None])


class JointStack(nn.Module):
    """Layers over the times at which anything happens in any modality."""

    def __init__(self, spec: CellSpec) -> None:
        super().__init__()
        self.stack = Stack(spec, spec.model.encoder_layers, Attention.ENCODER_SELF, attention=_joint_attention_of)

    def forward(self, streams: Streams, times: Streams) -> Tensor:
        """streams (B, T_m, M / 3), zero where padding, times (B, T_m) → mean over time (B, M)."""
        at = {name: when.clamp(min=0) for name, when in times.items()}
        joint = [
            stream.new_zeros(len(stream), LONGEST, stream.size(-1)).scatter_add(
                1, at[name][:, :, None].expand_as(stream), stream
            )
            for name, stream in streams.items()
        ]
        happens = torch.zeros(joint[0].shape[:2], dtype=torch.long, device=joint[0].device)
        for name, when in times.items():
            happens = happens.scatter_add(1, at[name], (when >= 0).long())
        padding = happens == 0
        return _mean(self.stack(torch.cat(joint, -1), padding=padding), padding)


class CrossmodalStack(nn.Module):
    """Layers in which each modality attends to the others, pair by pair."""

    def __init__(self, spec: CellSpec, narrow: int) -> None:
        super().__init__()
        own = {"model": spec.model.model_copy(update={"width": narrow})}
        numbers = range(1, spec.model.encoder_layers + 1)
        layers = [spec.of_layer(LayerName.of(Attention.ENCODER_SELF, number)) for number in numbers]
        self.layers = nn.ModuleList(_CrossmodalLayer(layer.model_copy(update=own)) for layer in layers)
        share_parameters(self)
        number_layers(self.layers)
        pre = spec.norm is Norm.PRE
        self.closing = nn.ModuleDict(
            {name: normalisation_of(own["model"]) if pre else nn.Identity() for name in Modality}
        )

    def forward(self, streams: Streams, times: Streams) -> Tensor:
        """streams (B, T_m, M / 3), zero where padding, times (B, T_m) → mean over time (B, M)."""
        for layer in self.layers:
            streams = layer(streams, times)
        return torch.cat([_mean(self.closing[name](streams[name]), times[name] < 0) for name in Modality], -1)


class _CrossmodalLayer(nn.Module):
    def __init__(self, spec: CellSpec) -> None:
        super().__init__()
        which = Attention.ENCODER_SELF
        self.self_attention = CrossmodalAttention(
            spec.model.width,
            spec.model.heads,
            tuple(Modality),
            combine=Combine.SUM,
            positions=positions_in(spec, which),
            **parts_of(spec, which),
        )
        self.attentions = {"self_attention": which}
        self.self_attention_residuals = nn.ModuleDict({name: Residual(spec) for name in Modality})
        self.feed_forwards = nn.ModuleDict({name: FeedForward(spec.model) for name in Modality})
        self.feed_residuals = nn.ModuleDict({name: Residual(spec) for name in Modality})

    def forward(self, streams: Streams, times: Streams) -> Streams:
        own, feed = cast(_Residuals, self.self_attention_residuals), cast(_Residuals, self.feed_residuals)
        changes = self.self_attention(
            {name: own[name].inner(stream) for name, stream in streams.items()},
            positions={name: when.clamp(min=0) for name, when in times.items()},
            key_padding={name: when < 0 for name, when in times.items()},
        )
        learned = {}
        for name in Modality:
            x = own[name].outer(streams[name], changes[name])
            learned[name] = feed[name].outer(x, self.feed_forwards[name](feed[name].inner(x)))
        return learned


def _joint_attention_of(spec: CellSpec, which: Attention) -> nn.Module:
    if spec.space is Space.SEQUENCE:
        return transformer.attention_of(spec, which)
    widths = [spec.model.width // len(Modality)] * len(Modality)
    return MultimodalAttention(widths, spec.model.heads, positions=positions_in(spec, which), **parts_of(spec, which))


def _mean(x: Tensor, padding: Tensor) -> Tensor:
    """Return the mean (B, M) of the tokens of x (B, T, M) that are not padding; zero if all are."""
    present = (~padding)[:, :, None]
    return (x * present).sum(1) / present.sum(1).clamp(min=1)
