"""Labelled directed graphs: X = F, with relations between the elements in place of positions.

e_ij = ⟨q_i, k_j + a^K_ij⟩ / √D,   z_i = Σ_j softmax_j(e_ij) (v_j + a^V_ij)          [Shaw et al. 2018, Eq. 3 and 4]

a^K_ij and a^V_ij are learned vectors of the edge's label. With any kernel, a^K is the factor exp(⟨q_i, a^K_ij⟩ / √D)
of the weight. Positions clipped at C are the graph whose labels are clip(j - i, -C, C) + C (their Sec. 3.2).

The fused path never builds a vector for each pair: the products of the queries with all labels are gathered, and the
weights are summed label by label before they are multiplied with a^V.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from kdx.attention import smoother
from kdx.attention.interfaces import extremes
from kdx.attention.spaces.set import SetAttention
from kdx.vocabulary import Maps, Smoother


class Relation(StrEnum):
    """The side to which a label's vector is added: a^K to the keys, a^V to the values."""

    KEY = "key"
    VALUE = "value"


class _Pairs(NamedTuple):
    """The tensors from which weights are computed."""

    query: Tensor
    """(B, H, T, D), like the key."""
    key: Tensor
    visible: Tensor
    """(B, 1, T, T) or (1, T, T)"""
    labels: Tensor
    """(B, T, T), 0 for no edge."""
    factor: Tensor | None
    """Logarithm of the relation's factor, (B, H, T, T); None if there is none."""


class GraphAttention(nn.Module):
    """Self-attention of nodes along labelled edges.

    A graph whose nodes all see each other needs a label for "no relation".

    Args:
        labels: L, the number of labels.
        relations: any of a^K and a^V; without both, the edges only decide which nodes see each other.
        sharing: whether each head has its own vectors of the labels (`per-head`), or all share them (`shared`).
        width, heads, parts: as in `KernelAttention`.

    Raises:
        ValueError: for fewer than one label, an unknown relation, two maps, or what `KernelAttention` refuses.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        labels: int,
        *,
        relations: Sequence[Relation] = (Relation.KEY,),
        sharing: str = "per-head",
        **parts: Any,
    ) -> None:
        super().__init__()
        if parts.get("maps", Maps.SINGLE) != Maps.SINGLE:
            raise ValueError(f"maps: {parts['maps']}; allowed on graphs: {Maps.SINGLE}")
        if parts.get("smoother", Smoother.LOCAL_CONSTANT) != Smoother.LOCAL_CONSTANT:
            raise ValueError(f"smoother: {parts['smoother']}; allowed on graphs: {Smoother.LOCAL_CONSTANT}")
        if labels < 1:
            raise ValueError(f"labels: {labels}; allowed: 1 or more")
        for relation in relations:
            if relation not in tuple(Relation):
                raise ValueError(f"relations: {relation!r}; allowed: {', '.join(Relation)}")
        if sharing not in ("per-head", "shared"):
            raise ValueError(f"sharing: {sharing!r}; allowed: per-head, shared")
        self.labels = labels
        self.attention = SetAttention(width, heads, **parts)
        self.path = self.attention.path
        self.vectors = nn.ParameterDict()
        for relation in Relation:
            if relation in relations:
                table = torch.empty(1 if sharing == "shared" else heads, labels, self.attention.shape[1])
                self.vectors[relation] = nn.Parameter(nn.init.normal_(table, std=table.size(-1) ** -0.5))

    def forward(self, nodes: Tensor, labels: Tensor, *, key_padding: Tensor | None = None) -> Tensor:
        """Attend along the edges.

        Args:
            nodes: (B, T, M)
            labels: integers (B, T, T) or (T, T); [i, j] is the label of the edge along which i sees j, from 0 to
                L - 1, or -1 for no edge. The output of a node without any edge is only the bias.
            key_padding: (B, T), True where a node is padding and must not be seen.

        Returns:
            (B, T, M)

        Raises:
            ValueError: for a label out of range. On a GPU, where a check would have to wait, the look-up fails.
        """
        return self.attention.output_of(self.smooth(nodes, labels, key_padding=key_padding), nodes)

    def smooth(self, nodes: Tensor, labels: Tensor, *, key_padding: Tensor | None = None) -> Tensor:
        """Return Definition 1 in each head, before W_o: (B, H, T, D). Arguments as in `forward`."""
        attention, literal = self.attention, self.path == "literal"
        query, key, visible, labels, factor = self._pairs(nodes, labels, key_padding, literal)
        value, to_values = attention.for_all_heads(attention.values_of(nodes)), self.vectors.get(Relation.VALUE)
        dropout = attention.dropout if self.training else 0.0
        fusible = not literal and to_values is None and attention.normaliser.is_row_sum
        kernel = attention.kernel.dot_product(query, key) if fusible else None
        if kernel is not None:
            return smoother.fused([kernel], value, bias=factor, visible=visible, dropout=dropout)
        pair_values = None
        if to_values is not None:
            summed = _values_by_pair if literal else _values_by_label
            pair_values = partial(summed, table=to_values, labels=labels)
        log_weight = _sum(attention.kernel.log_weight(query, key), factor)
        return (smoother.literal if literal else smoother.quick)(
            log_weight,
            attention.kernel.weight(query, key),
            attention.normaliser,
            value,
            visible=visible,
            pair_values=pair_values,
            dropout=dropout,
        )

    def weights(self, nodes: Tensor, labels: Tensor, *, key_padding: Tensor | None = None) -> Tensor:
        """Return the normalised weights by the literal path, (B, H, T, T). Arguments as in `forward`."""
        query, key, visible, labels, factor = self._pairs(nodes, labels, key_padding, literal=True)
        kernel = self.attention.kernel
        log_weight = _sum(kernel.log_weight(query, key), factor)
        return smoother.weights(log_weight, kernel.weight(query, key), self.attention.normaliser, visible)

    def _pairs(self, nodes: Tensor, labels: Tensor, key_padding: Tensor | None, literal: bool) -> _Pairs:
        self._check(labels)
        query = self.attention.queries_of(nodes)
        key = query if self.attention.key is None else self.attention.for_all_heads(self.attention.keys_of(nodes))
        visible = labels >= 0
        if key_padding is not None:
            visible = visible & ~key_padding.unsqueeze(-2)
        labels = labels.clamp(min=0).expand(nodes.size(0), -1, -1)
        to_keys, factor = self.vectors.get(Relation.KEY), None
        if to_keys is not None:
            product = _by_pair(query, to_keys, labels) if literal else _by_label(query, to_keys, labels)
            factor = product / math.sqrt(query.size(-1))
        return _Pairs(query, key, visible.unsqueeze(-3), labels, factor)

    def _check(self, labels: Tensor) -> None:
        for label in extremes(labels) or ():
            if not -1 <= label < self.labels:
                raise ValueError(f"labels: {label} is no label; allowed: 0 to {self.labels - 1}, and -1 for no edge")


def _sum(log_weight: Tensor | None, factor: Tensor | None) -> Tensor | None:
    if log_weight is None or factor is None:
        return factor if log_weight is None else log_weight
    return log_weight + factor


def _by_pair(query: Tensor, table: Tensor, labels: Tensor) -> Tensor:
    """Return ⟨q_i, a_ij⟩ as printed: (B, H, T, T) from (B, H, T, D), (H or 1, L, D) and (B, T, T)."""
    return (query.unsqueeze(-2) * table[:, labels].transpose(0, 1)).sum(-1)


def _by_label(query: Tensor, table: Tensor, labels: Tensor) -> Tensor:
    """Return the same, gathered from the products with all labels."""
    product = query @ table.transpose(-2, -1)  # (B, H, T, L)
    return product.gather(-1, labels.unsqueeze(1).expand(-1, query.size(1), -1, -1))


def _values_by_pair(weights: Tensor, table: Tensor, labels: Tensor) -> Tensor:
    """Return Σ_j w_ij a_ij as printed: (B, H, T, D) from (B, H, T, T), (H or 1, L, D) and (B, T, T)."""
    return (weights.unsqueeze(-1) * table[:, labels].transpose(0, 1).to(weights.dtype)).sum(-2)


def _values_by_label(weights: Tensor, table: Tensor, labels: Tensor) -> Tensor:
    """Return the same, from the weights summed label by label."""
    total = weights.new_zeros(*weights.shape[:-1], table.size(1))  # (B, H, T, L)
    total = total.scatter_add(-1, labels.unsqueeze(1).expand_as(weights), weights)
    return total @ table.to(weights.dtype)
