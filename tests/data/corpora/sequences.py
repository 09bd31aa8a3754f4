"""Examples of the task `answer` as a reader has them: tokens without padding, and answers by their place."""

from dataclasses import replace
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from kdx.data.examples import NO_ANSWER, ExamplesOneByOne

SEED = st.integers(0, 2**40)


class Read(NamedTuple):
    tokens: list[int]
    answers: dict[int, int]
    slices: dict[str, dict[int, int]]


def read(made: ExamplesOneByOne, seed: int, **options) -> Read:
    """One example at a difficulty, which must fit."""
    made = replace(made, **options)
    assert made.fault() is None
    example = made.draw(Random(seed))
    row, targets = example.inputs["tokens"].tolist(), example.targets.tolist()
    assert len(row) == len(targets) == made.tokens
    tokens = [token for token in row if token]
    assert row == tokens + [0] * (made.tokens - len(tokens))
    answers = {place: target for place, target in enumerate(targets) if target != NO_ANSWER}
    assert answers and max(answers) < len(tokens)
    assert all(0 < token < made.classes for token in (*tokens, *answers.values()))
    return Read(
        tokens, answers, {name: {place: int(of[place]) for place in answers} for name, of in example.slices.items()}
    )


def at_end(found: Read, mark: int) -> tuple[list[int], list[int]]:
    """What stands before the only mark, and the answer after it, of which all but the last token is read again."""
    assert found.tokens.count(mark) == 1
    place = found.tokens.index(mark)
    assert list(found.answers) == list(range(place, place + len(found.answers)))
    answer = list(found.answers.values())
    assert found.tokens[place + 1 :] == answer[:-1]
    return found.tokens[:place], answer
