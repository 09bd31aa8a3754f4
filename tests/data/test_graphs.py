"""Graphs without cycles, and who descends from whom in them, by another way than the search that made the answer."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.data.graphs import CHILD, KINDS, LABELS, NO_EDGE, draw_graph, draw_one_way
from kdx.tasks.corpora import BUILT_IN

SEED = st.integers(0, 2**40)


def chain_lengths(edges: np.ndarray) -> np.ndarray:
    """[i, j]: edges of the shortest chain from i down to j, 0 where there is none; by powers of the parents' matrix."""
    children = (edges == 1).astype(int)
    shortest, reached = np.zeros_like(children), np.eye(len(edges), dtype=int)
    for length in range(1, len(edges)):
        reached = (reached @ children > 0).astype(int)
        shortest[(shortest == 0) & (reached > 0)] = length
    return shortest


@given(SEED, st.integers(2, 20))
def test_an_edge_is_seen_from_both_ends_and_no_way_leads_back(seed, nodes):
    edges = np.array(draw_graph(Random(seed), nodes))
    assert (edges.diagonal() == 0).all() and edges.max() < LABELS and edges.min() >= NO_EDGE
    kinds = np.arange(KINDS)
    for out, back in zip(1 + 2 * kinds, 2 + 2 * kinds, strict=True):
        assert ((edges == out) == (edges == back).T).all()
    out_of = np.isin(edges, 1 + 2 * kinds).astype(int)
    assert not np.linalg.matrix_power(out_of, nodes).any()
    # Every node but the first has an edge that leads to it.
    assert (out_of.sum(0) == 0).sum() == 1


@given(SEED, st.integers(2, 20), st.data())
def test_one_way_each_node_sees_so_many_others_and_one_of_them_as_its_child(seed, nodes, data):
    seen = data.draw(st.integers(1, nodes - 1))
    edges = np.array(draw_one_way(Random(seed), nodes, seen))
    assert (edges.diagonal() == NO_EDGE).all() and edges.max() < LABELS
    assert ((edges >= CHILD).sum(1) == seen).all() and ((edges == CHILD).sum(1) == 1).all()
    assert ((edges == NO_EDGE).sum(1) == nodes - seen).all()


@pytest.mark.parametrize("corpus", ["ancestor", "relation"])
@settings(deadline=None)
@given(SEED, st.integers(4, 14), st.integers(1, 4))
def test_the_answer_is_the_shortest_chain(corpus, seed, nodes, steps):
    steps = min(steps, nodes // 2)
    made = replace(BUILT_IN[corpus], nodes=nodes, steps=steps)
    assert made.fault() is None
    example = made.draw(Random(seed))
    edges, (one, other) = example.inputs["edges"], example.inputs["nodes"].tolist()
    length = int(chain_lengths(edges)[one, other])
    assert edges.shape == (nodes, nodes) and one != other and length <= steps
    assert example.targets.tolist() == [length if corpus == "relation" else length > 0]
    assert example.slices["distance"].tolist() == [length]
