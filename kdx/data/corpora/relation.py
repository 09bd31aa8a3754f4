"""Relations: how many generations lie between two nodes of a graph, by the shortest chain from parent to child."""

from dataclasses import dataclass
from random import Random

from kdx.data.difficulty import option
from kdx.data.examples import Example, ExamplesOneByOne
from kdx.data.graphs import asked, draw_pair, rare
from kdx.errors import KdxError


@dataclass(frozen=True, kw_only=True)
class Relation(ExamplesOneByOne):
    """Whether one node is another's parent, grandparent, and so on, or nothing of it: each as often."""

    slices = ("distance",)

    nodes: int = option(10, minimum=4)
    """Of relation: nodes of a graph."""
    steps: int = option(3, minimum=1)
    """Of relation: generations between two nodes at most; there is a class for each, and one for no relation."""

    @property
    def tokens(self) -> int:
        return self.nodes

    @property
    def classes(self) -> int:
        return self.steps + 1

    def fault(self) -> KdxError | None:
        return rare(self.nodes, self.steps)

    def draw(self, random: Random) -> Example:
        graph, one, other, distance = draw_pair(random, self.nodes, range(self.steps + 1))
        return asked(graph, one, other, distance, distance)


EXAMPLES = Relation(task="graph")
