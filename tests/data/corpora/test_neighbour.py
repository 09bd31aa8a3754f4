from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.data.corpora.neighbour import Neighbour
from kdx.data.graphs import CHILD


@settings(deadline=None)
@given(st.integers(0, 2**40), st.integers(4, 14), st.data())
def test_the_answer_is_the_name_of_the_only_child_of_the_last_node(seed, nodes, data):
    edges = data.draw(st.integers(2, nodes - 1))
    made = Neighbour(nodes=nodes, edges=edges)
    assert made.fault() is None
    example = made.draw(Random(seed))
    labels, named = example.inputs["edges"], example.inputs["nodes"].tolist()
    (answer,), (difficulty,) = example.targets.tolist(), example.slices["edges"].tolist()
    assert sorted(named) == list(range(nodes)) and 0 <= answer < made.classes == nodes - 1
    assert [node for node in range(nodes) if labels[named[-1], node] == CHILD] == [named[answer]]
    assert 2 <= difficulty <= edges and ((labels >= 0).sum(1) == difficulty).all()


def test_every_name_and_every_number_of_edges_comes():
    made, random = Neighbour(nodes=6, edges=4), Random(0)
    drawn = [made.draw(random) for _ in range(300)]
    assert {example.targets.item() for example in drawn} == set(range(5))
    assert {example.slices["edges"].item() for example in drawn} == {2, 3, 4}


def test_more_edges_than_other_nodes_are_refused():
    assert str(replace(Neighbour(), nodes=9).fault()) == (
        "data.edges: 16 edges from one of 9 nodes to others\n  allowed: at most 8"
    )
    assert Neighbour(nodes=9, edges=8).fault() is None
