from collections import Counter
from random import Random

import pytest

from kdx.data.corpora.edge_label import EdgeLabel
from kdx.data.graphs import LABELS, NO_EDGE


@pytest.mark.parametrize("nodes", [4, 10])
def test_every_node_sees_one_other_and_the_answer_is_the_label_of_that_edge(nodes):
    made, random = EdgeLabel(nodes=nodes), Random(0)
    for _ in range(100):
        example = made.draw(random)
        labels, (node,) = example.inputs["edges"], example.inputs["nodes"].tolist()
        assert ((labels != NO_EDGE).sum(1) == 1).all() and (labels.diagonal() == NO_EDGE).all()
        assert labels[node].max() == 1 + example.targets.item() < LABELS


def test_every_label_comes_as_often():
    made, random = EdgeLabel(), Random(0)
    found = Counter(made.draw(random).targets.item() for _ in range(1200))
    assert set(found) == set(range(made.classes)) and all(150 < times < 250 for times in found.values())
