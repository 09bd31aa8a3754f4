"""What kdx knows of a task: its class says it, and it is read without torch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kdx.tasks.data_kinds import DATA_KINDS, DataKind
from kdx.vocabulary import Attention, Direction, Embeddings, Space
from kdx.words.family import Definition

_METRIC = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Setting(StrEnum):
    """The keys of the grid that not every task has."""

    MEMORY = "memory"
    LENGTH = "training.length"
    TEST_STREAMS = "evaluation.streams"
    TEST_LENGTH = "evaluation.length"
    TEST_MEMORY = "evaluation.memory"
    CUTOFFS = "model.cutoffs"
    OUTPUT_DROPOUT = "model.output_dropout"
    BEAM = "evaluation.beam"
    VALID_BEAM = "evaluation.valid_beam"
    LENGTH_PENALTY = "evaluation.length_penalty"
    PENALTY = "evaluation.penalty"
    LONGEST = "evaluation.longest"


class Slicing(NamedTuple):
    """A respect in which the targets of a test differ in difficulty, whatever the corpus (`kdx.tasks.difficulty`)."""

    respect: str
    """As metrics have it: `context` in `perplexity/context=5-8`."""
    title: str
    """What number of a target it is."""
    metrics: tuple[str, ...]
    """The metrics that a test measures by slice."""


@dataclass(frozen=True)
class Task(Definition):
    """One task. Everything that depends on the task, and is not in its own files, asks this.

    Its class says all this, see `kdx.training.module.TaskModule`.

    Raises:
        ValueError: what it says does not fit together.
    """

    reads: str
    """The kind of data that it learns from, a word of `DATA_KINDS`."""
    metrics: Mapping[str, Direction]
    """What a validation can give, and which end of each is good; the first selects unless said otherwise."""
    only_test: Mapping[str, Direction]
    """What a test gives beside them."""
    slicings: tuple[Slicing, ...]
    """The respects by which a test gives some of its metrics by slice as well."""
    attentions: tuple[Attention, ...]
    spaces: tuple[Space, ...]
    """In which its tokens may be seen, its own first; none: a sequence and nothing else."""
    embeddings: tuple[Embeddings, ...]
    """The ways in which its embeddings can be one; the first stands for `shared` where they cannot all be."""
    settings: tuple[Setting, ...]
    """Keys of the grid that not every task has, but this one."""
    head_divisor: int
    """What each head's features must divide by, beside what its parts ask for."""

    def __post_init__(self) -> None:
        if self.reads not in DATA_KINDS:
            raise ValueError(f"`reads` is `{self.reads}`; allowed: {', '.join(DATA_KINDS)}")
        if "loss" not in self.metrics:
            raise ValueError("`metrics` lacks `loss`, by which a run is seen to diverge")
        for name in (*self.metrics, *self.only_test):
            if not _METRIC.fullmatch(name):
                raise ValueError(f"metric `{name}` is no name of a-z, 0-9 and _")
        if twice := self.metrics.keys() & self.only_test.keys():
            raise ValueError(f"`only_test` has `{min(twice)}`, which `metrics` has")
        if unknown := [name for one in self.slicings for name in one.metrics if name not in self.test_metrics]:
            raise ValueError(f"`slicings` has the metric `{unknown[0]}`, which the test has not")
        for fact in ("attentions", "embeddings"):
            if not getattr(self, fact):
                raise ValueError(f"`{fact}` is empty")
        if self.head_divisor < 1:
            raise ValueError(f"`head_divisor` is {self.head_divisor}; allowed: from 1 on")

    @property
    def data(self) -> DataKind:
        """The kind of data that it learns from."""
        return DATA_KINDS[self.reads]

    @property
    def test_metrics(self) -> Mapping[str, Direction]:
        """What a test gives, and which end of each is good."""
        return {**self.metrics, **self.only_test}

    @property
    def evaluation_settings(self) -> tuple[str, ...]:
        """What an evaluation of a trained run may set, as keys of the grid."""
        section = "evaluation."
        # `valid_beam` is of the validations within the training.
        own = (key.removeprefix(section) for key in self.settings if key.startswith(section) and "valid" not in key)
        return (*own, *(["corpus"] if self.data.other_reader else []), "split")
