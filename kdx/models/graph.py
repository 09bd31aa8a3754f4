"""A Transformer over the nodes of a labelled directed graph (Shaw et al. 2018, Sec. 3.1) that answers questions."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from kdx.attention.spaces.graph import GraphAttention, Relation
from kdx.data.graphs import LABELS
from kdx.grid.placement import positions_in, value_in
from kdx.grid.spec import CellSpec
from kdx.models.dropout import Dropout
from kdx.models.set import set_attention_of
from kdx.models.transformer import Stack, embedding_of, features_of, initialise, linear_of
from kdx.vocabulary import Attention, Space

_PADDING_AND_NAMELESS = 2


class GraphModel(nn.Module):
    """Maps edges and the nodes that a question names to the logits of the answer, computed at the last of these nodes.

    Args:
        named: number of nodes that a question names.
    """

    def __init__(self, spec: CellSpec, classes: int, named: int) -> None:
        super().__init__()
        self.sees_edges = spec.space is Space.GRAPH
        attention = _attention_of if self.sees_edges else set_attention_of
        # The role of a node in the question: none, the first, the second, and so on.
        self.input = embedding_of(_PADDING_AND_NAMELESS + named, spec.model.width)
        self.scale = spec.model.width**0.5
        self.dropout = Dropout(spec.model.dropout)
        self.encoder = Stack(spec, spec.model.encoder_layers, Attention.ENCODER_SELF, attention=attention)
        self.output = linear_of(spec.model.width, classes)
        initialise(self, spec.model.initialisation)

    def forward(self, edges: Tensor, nodes: Tensor) -> Tensor:
        """edges (B, T, T), labels or -1 for no edge; nodes (B, N), the named ones → logits (B, 1, V)."""
        roles = torch.ones(edges.shape[:2], dtype=torch.long, device=edges.device)
        names = torch.arange(nodes.size(1), device=edges.device) + _PADDING_AND_NAMELESS
        roles = roles.scatter(1, nodes, names.expand_as(nodes))
        x = self.dropout(self.input(roles) * self.scale)
        x = self.encoder(x, edges=edges if self.sees_edges else None)
        return self.output(x[torch.arange(len(x), device=x.device), nodes[:, -1]][:, None])

    @classmethod
    def of_weights(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> "GraphModel":
        """Return the model that has these weights."""
        return cls(spec, len(state["output.weight"]), len(state["input.weight"]) - _PADDING_AND_NAMELESS)


def _attention_of(spec: CellSpec, which: Attention) -> nn.Module:
    """Return the attention of a graph: look-ups by distance become look-ups by label (Shaw et al. 2018, Sec. 3.1)."""
    to_keys = "lookup" in positions_in(spec, which)
    to_values = value_in(spec, which) == "table"
    relations = [relation for relation, has in ((Relation.KEY, to_keys), (Relation.VALUE, to_values)) if has]
    return GraphAttention(
        spec.model.width,
        spec.model.heads,
        LABELS,
        relations=relations,
        sharing=spec.option("sharing") or "per-head",
        **features_of(spec),
    )
