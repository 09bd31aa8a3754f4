"""The Transformer over graphs: what it sees of edges, by the words of the cell."""

from random import Random

import pytest
import torch

from kdx.attention.spaces.graph import GraphAttention
from kdx.data.graphs import LABELS, draw_graph
from kdx.grid.spec import CellSpec
from kdx.models.graph import GraphModel

SMALL = {"width": 16, "heads": 2, "encoder_layers": 2, "inner": 16, "dropout": 0.0}
NODES, CLASSES, NAMED = 7, 4, 2


def model_of(named: int = NAMED, **axes) -> GraphModel:
    fields = {"task": "graph", "data": {"corpus": "relation"}, "model": SMALL, **axes}
    torch.manual_seed(0)
    return GraphModel(CellSpec.model_validate(fields), CLASSES, named).eval()


def batch(count: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    random = Random(0)
    edges = torch.tensor([draw_graph(random, NODES) for _ in range(count)])
    return edges, torch.tensor([random.sample(range(NODES), 2) for _ in range(count)])


@pytest.mark.parametrize(
    ("axes", "relations"),
    [
        ({}, []),
        ({"position": "lookup"}, ["key"]),
        ({"value": "table"}, ["value"]),
        ({"position": "lookup", "value": "table", "sharing": "shared"}, ["key", "value"]),
    ],
)
def test_words_of_shaw_say_which_vectors_a_label_has(axes, relations):
    model = model_of(**axes)
    attentions = [module for module in model.modules() if isinstance(module, GraphAttention)]
    assert len(attentions) == 2
    for attention in attentions:
        assert list(attention.vectors) == relations and attention.labels == LABELS
        assert all(len(table) == (1 if "sharing" in axes else 2) for table in attention.vectors.values())


@torch.no_grad()
def test_names_of_nodes_do_not_matter():
    model = model_of(position="lookup", value="table")
    edges, nodes = batch()
    logits = model(edges, nodes)
    assert logits.shape == (3, 1, CLASSES)
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
    renamed = model(edges[:, order][:, :, order], order.argsort()[nodes])
    torch.testing.assert_close(renamed, logits)


@torch.no_grad()
def test_edges_and_their_labels_matter_where_they_are_seen():
    edges, nodes = batch()
    relabelled = torch.where(edges > 0, 1 + edges % (LABELS - 1), edges)
    fewer = torch.where(edges > 2, -1, edges)
    for axes, sees_edges, sees_labels in (
        ({"space": "set"}, False, False),
        ({}, True, False),
        ({"position": "lookup"}, True, True),
        ({"value": "table"}, True, True),
    ):
        model = model_of(**axes)
        logits = model(edges, nodes)
        assert torch.allclose(model(fewer, nodes), logits, atol=1e-5) is not sees_edges
        assert torch.allclose(model(relabelled, nodes), logits, atol=1e-5) is not sees_labels


@pytest.mark.parametrize("named", [1, NAMED, NODES])
def test_weights_know_how_many_nodes_are_named(named):
    state = model_of(named, value="table").state_dict()
    spec = CellSpec.model_validate(
        {"task": "graph", "data": {"corpus": "relation"}, "model": SMALL, "value": "table"},
    )
    GraphModel.of_weights(spec, state).load_state_dict(state)


@torch.no_grad()
@pytest.mark.parametrize("named", [1, NODES])
def test_a_question_may_name_one_node_or_all_and_the_last_gathers_the_answer(named):
    model = model_of(named, position="lookup")
    edges = torch.full((1, NODES, NODES), -1)
    edges[0, 3, 5] = 1
    others = [node for node in range(NODES) if node != 3]
    nodes = torch.tensor([[*others[: named - 1], 3]])
    logits = model(edges, nodes)
    assert logits.shape == (1, 1, CLASSES)
    # What the last one sees matters, and what others see does not.
    elsewhere, more = edges.clone(), edges.clone()
    elsewhere[0, 4, 2], more[0, 3, 2] = 1, 2
    torch.testing.assert_close(model(elsewhere, nodes), logits)
    assert named == 1 or not torch.allclose(model(more, nodes), logits, atol=1e-5)
