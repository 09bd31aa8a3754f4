"""What a corpus of examples is: arrays instead of text, made from numbers that a seed gives.

An example is a function of its own row of numbers, so a corpus is the same in every order and at every size.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdx.vocabulary import Split

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Examples:
    """Some examples; each array has one a row."""

    inputs: Mapping[str, NDArray[Any]]
    """What the model takes, by the names of its arguments."""
    targets: NDArray[Any]
    """(N, T): the classes to be told, T of each example."""

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True)
class GeneratedExamples:
    """A corpus of examples that is made from a seed."""

    task: str
    sizes: Mapping[Split, int]
    """Examples of each split; the grid may want another number of training examples."""
    tokens: int
    """Tokens that the model reads of an example, padding included."""
    classes: int
    draws: int
    """Numbers that an example is made of."""
    make: Callable[[Numbers], Examples]
    """(N, draws) numbers from [0, 1) → N examples."""

    def generate(self, name: str, seed: int, split: Split, count: int) -> Examples:
        """The first `count` examples of a split; a pure function of its arguments."""
        return self.make(_numbers([name, seed, split], count * self.draws).reshape(count, self.draws))


def _numbers(key: list[Any], count: int) -> Numbers:
    digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=16).digest()
    # Of numpy's randomness only the raw bits of a bit generator are promised to stay the same across versions.
    raw = np.random.PCG64(int.from_bytes(digest, "little")).random_raw(count)
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
