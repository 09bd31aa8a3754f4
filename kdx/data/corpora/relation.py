"""Relations: the number of generations between two nodes of a graph, by the shortest chain from parent to child."""

from dataclasses import dataclass
from random import Random

from kdx.data.corpora.ancestor import Ancestor
from kdx.data.examples import Example
from kdx.data.graphs import draw_pair, question


@dataclass(frozen=True, kw_only=True)
class Relation(Ancestor):
    """Whether one node is another's parent, grandparent, and so on, or unrelated; each answer is equally frequent."""

    name = "relation"

    @property
    def classes(self) -> int:
        return self.steps + 1

    def draw(self, random: Random) -> Example:
        graph, older, younger, distance = draw_pair(random, self.nodes, range(self.steps + 1))
        return question(graph, (older, younger), distance, distance=distance)
