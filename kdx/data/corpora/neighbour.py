"""Choices among neighbours: which of the nodes that the last named one sees is its child.

All nodes are named in an order of their own, and edges are seen from one end only, so that what a node gathers is one
mean of its neighbours. Where the label of an edge has a part in the weights (a^K of Shaw et al. 2018), a node can look
at its child alone and read its name. Where labels are only added to the values (a^V), the names and the labels of all
neighbours come together in one sum, out of which few heads can tell few names.
"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne
from kdx.data.graphs import CHILD, draw_one_way, question
from kdx.errors import KdxError
from kdx.words import option


@dataclass(frozen=True, kw_only=True)
class Neighbour(ExamplesOneByOne):
    """Which of the nodes that a node sees is its child."""

    name = "neighbour"
    task: str = "graph"
    slices = ("edges",)

    nodes: int = option(32, minimum=4)
    """Nodes of a graph."""
    edges: int = option(16, minimum=2)
    """Edges along which a node sees others at most; how many they are is drawn, one number for all nodes."""

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
