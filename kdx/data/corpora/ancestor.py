"""Ancestors: does a chain from parent to child lead from one node of a graph to another?"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne
from kdx.data.graphs import draw_pair, question
from kdx.errors import KdxError
from kdx.words import option


@dataclass(frozen=True, kw_only=True)
class Ancestor(ExamplesOneByOne):
    """Whether one node is an ancestor of another, which is so half of the time."""

    name = "ancestor"
    task: str = "graph"
    slices = ("distance",)

    nodes: int = option(10, minimum=4)
    """Number of nodes of a graph."""
    steps: int = option(3, minimum=1)
    """The most generations between two related nodes."""

    @property
    def tokens(self) -> int:
        return self.nodes

    @property
    def classes(self) -> int:
        return 2

    def fault(self) -> KdxError | None:
        if self.steps <= self.nodes // 2:
            return None
        problem = f"chains of {self.steps} among {self.nodes} nodes are rare"
        return KdxError(problem, place="data.steps", allowed=f"at most {self.nodes // 2}")

    def draw(self, random: Random) -> Example:
        lengths = range(1, self.steps + 1) if random.random() < 0.5 else (0,)
        graph, older, younger, distance = draw_pair(random, self.nodes, lengths)
        return question(graph, (older, younger), int(distance > 0), distance=distance)
