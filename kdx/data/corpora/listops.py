"""ListOps: nested lists, each with an operation on its members (Nangia & Bowman 2018; Tay et al. 2021).

    [MAX 2 9 [MIN 4 7 ] 0 ] =        answer: 9

The operations are the minimum, the maximum, the median, rounded down, and the last digit of the sum. Lists are less
deep and shorter than in the papers, where an encoder classifies the sequence; here a decoder predicts the digit at its
end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from statistics import median

from kdx.data.examples import Example, ExamplesOneByOne, answered
from kdx.errors import KdxError
from kdx.words import option

EQUALS, CLOSE, ZERO = 1, 2, 3
MIN, MAX, MEDIAN, SUM = OPERATORS = (13, 14, 15, 16)
"""Tokens that open a list, one for each operation."""
LIST = 0.25
"""Share of lists among the members of a list that may have them."""

_Tree = int | tuple[int, list["_Tree"]]


@dataclass(frozen=True, kw_only=True)
class ListOps(ExamplesOneByOne):
    """The value of nested lists, each with an operation on its members."""

    name = "listops"
    source = "Nangia & Bowman 2018; Tay et al. 2021"
    task: str = "answer"
    slices = ("depth",)

    depth: int = option(3, minimum=1)
    """The most levels of nested lists; their number is drawn."""
    members: int = option(4, minimum=2)
    """The most members of a list; the least is two."""
    length: int = option(48, minimum=5)
    """The most tokens of an example; a longer one is drawn again."""

    @property
    def tokens(self) -> int:
        return self.length

    @property
    def classes(self) -> int:
        return 1 + max(OPERATORS)

    def fault(self) -> KdxError | None:
        # With fewer tokens, most lists would be drawn again, and the remaining ones would have few members.
        needed = self.depth * (self.members + 3)
        if self.length < needed:
            problem = f"{self.length} tokens for lists of depth {self.depth} and up to {self.members} members"
            return KdxError(problem, place="data.length", allowed=f"{needed} or more")
        return None

    def draw(self, random: Random) -> Example:
        depth = random.randint(1, self.depth)
        while True:
            tree = self._tree(random, depth)
            prompt = [*_tokens(tree), EQUALS]
            if len(prompt) <= self.length:
                return answered(prompt, [ZERO + _value(tree)], {"depth": depth}, self.length)

    def _tree(self, random: Random, depth: int) -> _Tree:
        """Return a list of exactly this depth."""
        members: list[_Tree] = []
        count = random.randint(2, self.members)
        deepest = random.randrange(count)
        for place in range(count):
            if depth > 1 and place == deepest:
                members.append(self._tree(random, depth - 1))
            elif depth > 1 and random.random() < LIST:
                members.append(self._tree(random, random.randint(1, depth - 1)))
            else:
                members.append(random.randrange(10))
        return random.choice(OPERATORS), members


def _tokens(tree: _Tree) -> Iterator[int]:
    if isinstance(tree, int):
        yield ZERO + tree
        return
    operator, members = tree
    yield operator
    for member in members:
        yield from _tokens(member)
    yield CLOSE


def _value(tree: _Tree) -> int:
    if isinstance(tree, int):
        return tree
    operator, members = tree
    values = [_value(member) for member in members]
    if operator == SUM:
        return sum(values) % 10
    return min(values) if operator == MIN else max(values) if operator == MAX else int(median(values))
