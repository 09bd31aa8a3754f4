"""Associative recall of several pairs: keys with values are read, then keys are queried (Arora et al. 2023, Sec. 3).

    k3 v1  k7 v4  k1 v1  .  .  k7  .  k3  .  k1  .        answers: after k7 v4, after k3 v1, after k1 v1

The keys of an example are different, so no pair overwrites another, and each is queried once, anywhere after the pairs.
Between the queries are blanks, not random tokens as in the paper's code, among which a pair could come again with
another value. The model predicts an answer after its key, and does not read it.
"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne, sequence
from kdx.errors import KdxError
from kdx.words import option

BLANK = 1


@dataclass(frozen=True, kw_only=True)
class Recall(ExamplesOneByOne):
    """Keys with values are read, then keys are queried."""

    name = "recall"
    source = "Arora et al. 2023, Sec. 3"
    task: str = "answer"
    slices = ("pairs", "distance")

    pairs: int = option(8, minimum=1)
    """The most pairs of an example; their number is drawn."""
    length: int = option(48, minimum=3)
    """Number of tokens of an example, blanks included."""
    symbols: int = option(16, minimum=1)
    """Number of different keys, and of different values."""

    @property
    def tokens(self) -> int:
        return self.length

    @property
    def classes(self) -> int:
        return BLANK + 1 + 2 * self.symbols

    def fault(self) -> KdxError | None:
        if self.pairs > self.symbols:
            return KdxError(
                f"{self.pairs} pairs of different keys",
                place="data.pairs",
                allowed=f"at most the {self.symbols} symbols",
            )
        if self.length < 3 * self.pairs:
            problem = f"{self.pairs} pairs and as many questions in {self.length} tokens"
            return KdxError(problem, place="data.length", allowed=f"{3 * self.pairs} or more")
        return None

    def draw(self, random: Random) -> Example:
        count = random.randint(1, self.pairs)
        keys = [BLANK + 1 + key for key in random.sample(range(self.symbols), count)]
        values = [BLANK + 1 + self.symbols + random.randrange(self.symbols) for _ in keys]
        tokens = [token for pair in zip(keys, values, strict=True) for token in pair]
        tokens += [BLANK] * (self.length - len(tokens))
        asked_at = random.sample(range(2 * count, self.length), count)
        for key, place in zip(keys, asked_at, strict=True):
            tokens[place] = key
        return sequence(
            tokens,
            dict(zip(asked_at, values, strict=True)),
            {"pairs": count, "distance": {place: place - 2 * number for number, place in enumerate(asked_at)}},
            self.length,
        )
