"""Reversing: the same tokens from the last to the first, after a mark.

a c c b =        answer: b c c a
"""

from dataclasses import dataclass
from random import Random

from kdx.data.difficulty import option
from kdx.data.examples import Example, ExamplesOneByOne, answered

MARK = 1


@dataclass(frozen=True, kw_only=True)
class Reverse(ExamplesOneByOne):
    """Tokens from the last to the first."""

    slices = ("length",)

    length: int = option(16, minimum=1)
    """Of reverse: tokens to be reversed at most; how many they are is drawn."""
    symbols: int = option(8, minimum=2)
    """Of reverse: different tokens."""

    @property
    def tokens(self) -> int:
        return 2 * self.length

    @property
    def classes(self) -> int:
        return MARK + 1 + self.symbols

    def draw(self, random: Random) -> Example:
        given = [MARK + 1 + random.randrange(self.symbols) for _ in range(random.randint(1, self.length))]
        return answered([*given, MARK], given[::-1], {"length": len(given)}, self.tokens)


EXAMPLES = Reverse(task="answer")
