"""The seeds of a run: one for all that it draws, or one for each source of randomness (Bouthillier et al. 2021).

A run is a cell with one number, its seed. If the sources have different seeds, the number holds all three in its
decimal digits: 1, then four digits for each source. It is larger than any seed that a grid writes by itself, so no two
combinations share a number. Equal seeds of all sources are that seed, since the run has the same bits.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

MOST_APART = 9999
"""Largest seed of a source if the sources have different ones."""
_DIGITS = MOST_APART + 1
_APART = _DIGITS**3
"""Added to the number of different seeds."""
WORD = r"i\d{1,4}-o\d{1,4}-d\d{1,4}"
"""Different seeds as people read them; a pattern."""


class Source(StrEnum):
    """What a run draws at random. Each draw is a function of its source's seed, and of the epoch or the step."""

    INITIALISATION = "initialisation"
    """The first weights, and random features that stay as they are."""
    ORDER = "order"
    """The order of the batches in each epoch."""
    DROPOUT = "dropout"
    """What dropout drops, and all else that is drawn within a step."""


class SourceSeeds(NamedTuple):
    """The seed of each source."""

    initialisation: int
    order: int
    dropout: int

    @classmethod
    def of(cls, seed: int) -> "SourceSeeds":
        """Return the seeds behind the seed of a run."""
        if not _APART <= seed < 2 * _APART:
            return cls(seed, seed, seed)
        rest, dropout = divmod(seed - _APART, _DIGITS)
        return cls(*divmod(rest, _DIGITS), dropout)

    @property
    def number(self) -> int:
        """The seed of the run with these.

        Raises:
            ValueError: they differ, and one is above `MOST_APART`.
        """
        if self.initialisation == self.order == self.dropout:
            return self.initialisation
        if max(self) > MOST_APART:
            raise ValueError(f"different seeds are at most {MOST_APART}")
        return _APART + (self.initialisation * _DIGITS + self.order) * _DIGITS + self.dropout


def seed_word(seed: int) -> str:
    """Return the seed of a run as people read it: 7, or i0-o1-d2 for initialisation, order and dropout."""
    seeds = SourceSeeds.of(seed)
    return str(seed) if len(set(seeds)) == 1 else "i{}-o{}-d{}".format(*seeds)


def seed_of(word: str) -> int | None:
    """Return the seed of a run from what `seed_word` returns; None for any other text."""
    if not re.fullmatch(WORD, word, re.ASCII):
        return None
    return SourceSeeds(*(int(part[1:]) for part in word.split("-"))).number


def by_source(seeds: Iterable[int]) -> dict[Source, list[int]]:
    """Return source → the seed that each of these runs has of it."""
    runs = [SourceSeeds.of(seed) for seed in seeds]
    return {source: [getattr(run, source.value) for run in runs] for source in Source}


def shared(seeds: Iterable[int]) -> tuple[Source, ...]:
    """Return the sources of which some runs share a seed and others differ; none if the runs are independent.

    A source with one seed in all runs does not count: what they show holds for that seed.
    """
    return tuple(source for source, used in by_source(seeds).items() if 1 < len(set(used)) < len(used))


def in_words(seeds: Iterable[int]) -> str:
    """Return the number of different seeds of each source; empty if each run has one seed for all.

    Such as `3 of initialisation × 2 of order, seed 0 of dropout`.
    """
    sources = by_source(seeds)
    if len({tuple(used) for used in sources.values()}) == 1:
        return ""
    varied = [f"{len(set(used))} of {source}" for source, used in sources.items() if len(set(used)) > 1]
    fixed = [f"seed {used[0]} of {source}" for source, used in sources.items() if len(set(used)) == 1]
    return ", ".join(filter(None, (" × ".join(varied), " and ".join(fixed))))
