"""Induction: the token that followed this token before follows it again (Olsson et al. 2022).

    d a c b d a c b d        answers: after the second d a, after the second a c, …

A few tokens, all different, are repeated to the end. Their number is drawn, so no fixed distance leads to the answer;
only the token before it does.
"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne, sequence
from kdx.words import option


@dataclass(frozen=True, kw_only=True)
class Induction(ExamplesOneByOne):
    """The token that followed a token before follows it again."""

    name = "induction"
    source = "Olsson et al. 2022"
    task: str = "answer"
    slices = ("distance",)

    length: int = option(32, minimum=4)
    """Number of tokens of an example; at most half of them come before the first repetition."""
    symbols: int = option(32, minimum=2)
    """Number of different tokens."""

    @property
    def tokens(self) -> int:
        return self.length

    @property
    def classes(self) -> int:
        return 1 + self.symbols

    def draw(self, random: Random) -> Example:
        period = random.randint(2, min(self.symbols, self.length // 2))
        part = [1 + token for token in random.sample(range(self.symbols), period)]
        whole = [part[place % period] for place in range(self.length + 1)]
        answers = {place: whole[place + 1] for place in range(period, self.length)}
        return sequence(whole[:-1], answers, {"distance": period}, self.length)
