"""Choices among neighbours: which of the nodes that the last named node sees is its child?

All nodes are named, in random order, and edges are seen from one end only, so a node gathers one mean of its
neighbours. If the label of an edge enters the weights (a^K of Shaw et al. 2018), a node can look at its child only and
read its name. If labels are only added to the values (a^V), the names and labels of all neighbours are mixed in one
sum, from which few heads can recover few names.
"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne
from kdx.data.graphs import CHILD, draw_one_way, question
from kdx.errors import KdxError
from kdx.words import option


@dataclass(frozen=True, kw_only=True)
class Neighbour(ExamplesOneByOne):
    """The child among the nodes that a node sees."""

    name = "neighbour"
    task: str = "graph"
    slices = ("edges",)

    nodes: int = option(32, minimum=4)
    """Number of nodes of a graph."""
    edges: int = option(16, minimum=2)
    """The most edges along which a node sees others; their number is drawn, the same for all nodes."""

    @property
    def tokens(self) -> int:
        return self.nodes

    @property
    def classes(self) -> int:
        return self.nodes - 1

    def fault(self) -> KdxError | None:
        if self.edges < self.nodes:
            return None
        problem = f"{self.edges} edges from one of {self.nodes} nodes to others"
        return KdxError(problem, place="data.edges", allowed=f"at most {self.nodes - 1}")

    def draw(self, random: Random) -> Example:
        edges = random.randint(2, self.edges)
        graph = draw_one_way(random, self.nodes, edges)
        named = random.sample(range(self.nodes), self.nodes)
        child = graph[named[-1]].index(CHILD)
        return question(graph, named, named.index(child), edges=edges)
