"""Copying: the same tokens once more, after a mark.

a c c b =        answer: a c c b
"""

from dataclasses import dataclass
from random import Random

from kdx.data.difficulty import option
from kdx.data.examples import Example, ExamplesOneByOne, answered

MARK = 1


@dataclass(frozen=True, kw_only=True)
class Copy(ExamplesOneByOne):
    """Tokens once more."""

    slices = ("length",)

    length: int = option(16, minimum=1)
    """Of copy: tokens to be copied at most; how many they are is drawn."""
    symbols: int = option(8, minimum=2)
    """Of copy: different tokens."""

    @property
    def tokens(self) -> int:
        return 2 * self.length

    @property
    def classes(self) -> int:
        return MARK + 1 + self.symbols

    def draw(self, random: Random) -> Example:
        given = [MARK + 1 + random.randrange(self.symbols) for _ in range(random.randint(1, self.length))]
        return answered([*given, MARK], given, {"length": len(given)}, self.tokens)


EXAMPLES = Copy(task="answer")
