"""Corpora of examples: arrays instead of text, made from random numbers of a seed.

Each example is a function of its own row of numbers, so it does not depend on the order or the size of the corpus.
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
    """Examples as arrays, with one example in each row."""

    inputs: Mapping[str, NDArray[Any]]
    """Argument of the model → array."""
    targets: NDArray[Any]
    """(N, T): the classes to predict, T for each example."""

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True)
class GeneratedExamples:
    """A corpus of examples that is made from a seed."""

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
        """The first `count` examples of a split; a pure function of its arguments."""
        return self.make(_numbers([name, seed, split], count * self.draws).reshape(count, self.draws))


def _numbers(key: list[Any], count: int) -> Numbers:
    digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=16).digest()
    # NumPy promises only the raw bits of a bit generator to stay the same across versions.
    raw = np.random.PCG64(int.from_bytes(digest, "little")).random_raw(count)
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
