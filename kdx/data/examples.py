"""Corpora of examples: arrays instead of text, made from a seed.

Examples of a fixed form are made from random numbers, all at once: an example is a function of its own row, so a corpus
is the same in every order and at every size. Examples whose difficulty the grid chooses are drawn one by one.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kdx.errors import KdxError
from kdx.vocabulary import Split
from kdx.words.option import Option, options_of

Numbers = NDArray[np.float64]

NO_ANSWER = -100
"""The target of a position that has no answer; cross-entropy ignores it."""
_SHARES = {Split.VALID: 1, Split.TEST: 1, Split.TRAIN: 6}
"""The share of all possible examples that each split may draw, in eighths; no example is in two splits."""
_PATIENCE = 20_000
"""Number of examples of other splits in a row after which a split counts as exhausted."""


@dataclass(frozen=True)
class Examples:
    """Examples as arrays, with one example in each row."""

    inputs: Mapping[str, NDArray[Any]]
    """Argument of the model → array."""
    targets: NDArray[Any]
    """(N, T): the classes to predict, T of each example."""
    slices: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Respect, such as the `distance` to the last occurrence of what was read → difficulty of each target (N, T)."""

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True)
class ExamplesFromNumbers:
    """A corpus of one difficulty."""

    task: str
    sizes: Mapping[Split, int]
    """Number of examples in each split; the grid may set another number of training examples."""
    tokens: int
    """Number of tokens that the model reads in an example, padding included."""
    classes: int
    draws: int
    """Number of random numbers for an example."""
    make: Callable[[Numbers], Examples]
    """(N, draws) numbers from [0, 1) → N examples."""

    def generate(self, name: str, seed: int, split: Split, count: int) -> Examples:
        """Return the first `count` examples of a split, a pure function of its arguments."""
        return self.make(_numbers([name, seed, split], count * self.draws).reshape(count, self.draws))


@dataclass(frozen=True)
class Example:
    """One example."""

    inputs: Mapping[str, NDArray[Any]]
    targets: NDArray[Any]
    """(T,)"""
    slices: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """(T,) each"""


@dataclass(frozen=True, kw_only=True)
class ExamplesOneByOne(ABC):
    """A corpus whose difficulty depends on its options (`kdx.words.option`), which are its other fields.

    Raises:
        ValueError: an option has an invalid value.
    """

    name: ClassVar[str] = ""
    """Name in a grid; empty for a base class."""
    source: ClassVar[str] = ""
    """The paper; empty if there is none."""
    slices: ClassVar[tuple[str, ...]]
    """The names in `Example.slices`: the respects in which examples differ in difficulty."""

    task: str
    sizes: Mapping[Split, int] = field(
        default_factory=lambda: {Split.TRAIN: 20_000, Split.VALID: 500, Split.TEST: 1000}
    )

    def __post_init__(self) -> None:
        for name, option in options_of(type(self)).items():
            given = getattr(self, name)
            object.__setattr__(self, name, option.default if isinstance(given, Option) else option.value(given))

    @property
    @abstractmethod
    def tokens(self) -> int:
        """Number of tokens that the model reads in an example, padding included."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """Number of classes, or tokens, that a target may be."""

    def fault(self) -> KdxError | None:
        """Return the error for options that do not fit each other, at one of them (`data.…`); None if they fit."""
        return None

    @abstractmethod
    def draw(self, random: Random) -> Example:
        """Draw an example; all examples have arrays of the same shapes."""

    def generate(self, name: str, seed: int, split: Split, count: int) -> Examples:
        """Return the first `count` examples of a split, at least one; a pure function of its arguments and the options.

        For each seed, no example is in two splits.

        Raises:
            KdxError: there are too few different examples.
        """
        random = Random(f"{name} {seed} {split}")
        drawn: list[Example] = []
        last = tries = 0
        while len(drawn) < count:
            example = self.draw(random)
            tries += 1
            if _split_of(example, seed) is split:
                drawn.append(example)
                last = tries
            elif tries - last > _PATIENCE:
                problem = f"{name} has too few different examples for a {split} split that shares none with the others"
                raise KdxError(problem, place="data.corpus", hint="let its examples be longer")
        return Examples(
            {key: np.stack([example.inputs[key] for example in drawn]) for key in drawn[0].inputs},
            np.stack([example.targets for example in drawn]),
            {key: np.stack([example.slices[key] for example in drawn]) for key in drawn[0].slices},
        )


GeneratedExamples = ExamplesFromNumbers | ExamplesOneByOne
"""A corpus of examples that is made from a seed."""


def sequence(
    tokens: list[int], answers: Mapping[int, int], slices: Mapping[str, int | Mapping[int, int]], length: int
) -> Example:
    """Return an example of the task `answer`: the model reads tokens one by one, and predicts an answer after some.

    Args:
        tokens: ids from 1 on; 0 is padding.
        answers: index → the token to predict after reading the token at this index.
        slices: name → value of the whole example, or of each answer by its index.
        length: T, the same for all examples of the corpus; padding is on the right.
    """
    row, targets = np.zeros(length, np.int16), np.full(length, NO_ANSWER, np.int16)
    row[: len(tokens)] = tokens
    places = list(answers)
    targets[places] = list(answers.values())
    difficulties = {}
    for name, value in slices.items():
        difficulty = difficulties[name] = np.zeros(length, np.int64)
        difficulty[places] = value if isinstance(value, int) else [value[place] for place in places]
    return Example({"tokens": row}, targets, difficulties)


def answered(prompt: list[int], answer: list[int], slices: Mapping[str, int], length: int) -> Example:
    """Return a `sequence` with the answer at its end; each token of the answer is read after it was predicted."""
    places = range(len(prompt) - 1, len(prompt) + len(answer) - 1)
    return sequence([*prompt, *answer[:-1]], dict(zip(places, answer, strict=True)), slices, length)


def _split_of(example: Example, seed: int) -> Split:
    content = hashlib.blake2b(b"".join(array.tobytes() for array in example.inputs.values()), digest_size=8)
    content.update(str(seed).encode())
    place = content.digest()[0] % sum(_SHARES.values())
    return next(split for split, upto in zip(_SHARES, np.cumsum(list(_SHARES.values())), strict=True) if place < upto)


def random_bits(key: list[Any], count: int) -> NDArray[np.uint64]:
    """Return random integers of 64 bits, (count,), a pure function of a JSON value."""
    digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=16).digest()
    # NumPy promises only the raw bits of a bit generator to stay the same across versions.
    return np.random.PCG64(int.from_bytes(digest, "little")).random_raw(count)


def _numbers(key: list[Any], count: int) -> Numbers:
    return (random_bits(key, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
