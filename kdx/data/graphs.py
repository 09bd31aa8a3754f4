"""Labelled directed graphs, for questions about the relation of one node to another.

Edges have several kinds; only chains of one kind, from parent to child, decide descent. All nodes are the same, except
those that the question names, so only the edges carry information.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from kdx.data.examples import Example

KINDS = 3
"""Number of kinds of edges; the first kind leads from parent to child."""
CHILD = 1
"""The label of an edge along which a parent sees its child."""
LABELS = 1 + 2 * KINDS
"""Number of labels: one from a node to itself and, for each kind, one for an edge from a node and one to a node."""
NO_EDGE = -1
_PARENT = 0.5
"""Share of the edges that are from parent to child."""
_MOST_EDGES = 2
"""Largest number of edges that lead to a node."""

Graph = list[list[int]]
"""[i][j]: the label of the edge along which i sees j."""


def draw_graph(random: Random, nodes: int) -> Graph:
    """Draw a graph without cycles, whose edges are seen from both ends.

    In a random order, each node except the first has an edge from one or two nodes before it.
    """
    order = random.sample(range(nodes), nodes)
    graph = [[0 if row == column else NO_EDGE for column in range(nodes)] for row in range(nodes)]
    for place, node in enumerate(order[1:], 1):
        for other in random.sample(order[:place], min(place, random.randint(1, _MOST_EDGES))):
            kind = 0 if random.random() < _PARENT else random.randrange(1, KINDS)
            graph[other][node], graph[node][other] = 1 + 2 * kind, 2 + 2 * kind
    return graph


def descendants(graph: Graph, node: int) -> dict[int, int]:
    """Return descendant → length of the shortest chain of children that leads to it."""
    steps = {node: 0}
    left = [node]
    for parent in left:
        for child, label in enumerate(graph[parent]):
            if label == CHILD and child not in steps:
                steps[child] = steps[parent] + 1
                left.append(child)
    del steps[node]
    return steps


def draw_pair(random: Random, nodes: int, lengths: Sequence[int]) -> tuple[Graph, int, int, int]:
    """Draw a graph, two of its nodes, and the length of the shortest chain between them, which is one of `lengths`.

    A length of 0 means that the second node does not descend from the first.
    """
    wanted = random.choice(lengths)
    while True:
        graph = draw_graph(random, nodes)
        pairs = []
        for older in range(nodes):
            steps = descendants(graph, older)
            pairs += [(older, node) for node in range(nodes) if node != older and steps.get(node, 0) == wanted]
        if pairs:
            return graph, *random.choice(pairs), wanted


def draw_one_way(random: Random, nodes: int, seen: int) -> Graph:
    """Draw a graph in which each node sees `seen` others, one of them as its child, and not itself.

    An edge is seen from one end only, so a node does not learn from edges how others see it.
    """
    graph = [[NO_EDGE] * nodes for _ in range(nodes)]
    for node, row in enumerate(graph):
        others = random.sample([other for other in range(nodes) if other != node], seen)
        for other in others:
            row[other] = random.randrange(CHILD + 1, LABELS)
        row[others[0]] = CHILD
    return graph


def question(graph: Graph, named: Sequence[int], answer: int, **difficulty: int) -> Example:
    """Return an example with `edges` (n, n), labels from 0 on or -1 for no edge, and `nodes` (N,), the named ones."""
    return Example(
        {"edges": np.array(graph, np.int8), "nodes": np.array(named, np.int16)},
        np.array([answer], np.int16),
        {respect: np.array([value], np.int64) for respect, value in difficulty.items()},
    )
