"""Parity: whether the number of ones among some bits is odd (Hahn 2020; Chiang & Cholak 2022).

    1 0 1 1 =        answer: 1

Every bit counts, and attention with the same weight on all bits cannot distinguish one more from one less.
"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne, answered
from kdx.words import option

MARK, ZERO = 1, 2


@dataclass(frozen=True, kw_only=True)
class Parity(ExamplesOneByOne):
    """Whether the number of ones among some bits is odd."""

    name = "parity"
    source = "Hahn 2020; Chiang & Cholak 2022"
    task: str = "answer"
    slices = ("length",)

    length: int = option(16, minimum=4)
    """The most bits of an example; their number is drawn."""

    @property
    def tokens(self) -> int:
        return self.length + 1

    @property
    def classes(self) -> int:
        return ZERO + 2

    def draw(self, random: Random) -> Example:
        bits = [random.randrange(2) for _ in range(random.randint(1, self.length))]
        prompt = [*(ZERO + bit for bit in bits), MARK]
        return answered(prompt, [ZERO + sum(bits) % 2], {"length": len(bits)}, self.tokens)
