"""Labels of edges: what is the label of the only edge along which a node sees another?

The weight of an only neighbour is 1, whatever the label of the edge adds to the key (a^K of Shaw et al. 2018). Only
what the label adds to the value (a^V) reveals it.
"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne
from kdx.data.graphs import CHILD, LABELS, NO_EDGE, question
from kdx.words import option


@dataclass(frozen=True, kw_only=True)
class EdgeLabel(ExamplesOneByOne):
    """The label of the only edge along which a node sees another."""

    name = "edge-label"
    task: str = "graph"
    slices = ()

    nodes: int = option(10, minimum=4)
    """Number of nodes of a graph."""

    @property
    def tokens(self) -> int:
        return self.nodes

    @property
    def classes(self) -> int:
        return LABELS - CHILD

    def draw(self, random: Random) -> Example:
        graph = [[NO_EDGE] * self.nodes for _ in range(self.nodes)]
        for node, row in enumerate(graph):
            other = random.choice([other for other in range(self.nodes) if other != node])
            row[other] = random.randrange(CHILD, LABELS)
        node = random.randrange(self.nodes)
        return question(graph, [node], max(graph[node]) - CHILD)
