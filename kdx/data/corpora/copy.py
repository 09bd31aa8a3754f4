"""Copying: the same tokens once more, after a mark.

a c c b =        answer: a c c b
"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne, answered
from kdx.words import option

MARK = 1


@dataclass(frozen=True, kw_only=True)
class Copy(ExamplesOneByOne):
    """The same tokens once more, after a mark."""

    name = "copy"
    task: str = "answer"
    slices = ("length",)

    length: int = option(16, minimum=1)
    """The most tokens that are given; their number is drawn."""
    symbols: int = option(8, minimum=2)
    """Number of different tokens."""

    @property
    def tokens(self) -> int:
        return 2 * self.length

    @property
    def classes(self) -> int:
        return MARK + 1 + self.symbols

    def draw(self, random: Random) -> Example:
        given = [MARK + 1 + random.randrange(self.symbols) for _ in range(random.randint(1, self.length))]
        return answered([*given, MARK], self.answer(given), {"length": len(given)}, self.tokens)

    def answer(self, given: list[int]) -> list[int]:
        """Return the tokens after the mark."""
        return given
