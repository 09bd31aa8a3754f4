"""The facts about a task, as its class declares them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kdx.tasks.data_kinds import DATA_KINDS, PARALLEL_TEXT, DataKind
from kdx.vocabulary import Attention, Direction, Embeddings, Space
from kdx.words.family import Definition

_METRIC = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Setting(StrEnum):
    """Keys of the grid that only some tasks have."""

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


class Scale(StrEnum):
    """What the number of a metric is."""

    PERCENT = "percent"
    """A score from 0 to 100."""
    NATS = "nats"
    """A mean of -ln p, from 0."""
    BITS = "bits"
    """The same in bits."""
    PERPLEXITY = "perplexity"
    """The exponential of nats, from 1. Scores compare by their ratio."""
    RATIO = "ratio"
    """A score from 0 on."""
    OTHER = "other"
    """Any number."""


class Per(StrEnum):
    """What a metric is a mean over, or counted on."""

    TOKEN = "token"
    """Tokens of the vocabulary and tokenisation that a cell has."""
    WORD = "word"
    BYTE = "byte"
    TEXT = "text"
    """The whole text, as it is tokenised."""
    TARGET = "target"
    """What a test predicts, whatever the vocabulary."""
    EXAMPLE = "example"
    CLASS = "class"


class Measure(NamedTuple):
    """What a metric measures. It decides how its scores are compared, and which of them compare at all."""

    direction: Direction
    """Its good end."""
    scale: Scale
    per: Per


class Slicing(NamedTuple):
    """A measure of the difficulty of a test's targets, for every corpus of the task (`kdx.tasks.difficulty`)."""

    respect: str
    """Its name in metrics: `context` in `perplexity/context=5-8`."""
    title: str
    """What it counts, such as the number of tokens that a target is predicted from."""
    metrics: tuple[str, ...]
    """Metrics that a test measures by slice."""


@dataclass(frozen=True)
class Task(Definition):
    """A task, as code outside its class sees it; see `kdx.training.module.TaskModule`.

    Raises:
        ValueError: the facts do not fit together.
    """

    reads: str
    """The kind of data that it learns from, a name in `DATA_KINDS`."""
    metrics: Mapping[str, Measure]
    """Metric of a validation → what it measures; by default the first one selects."""
    only_test: Mapping[str, Measure]
    """Further metrics of a test."""
    slicings: tuple[Slicing, ...]
    """The measures of difficulty by which a test divides some of its metrics."""
    attentions: tuple[Attention, ...]
    spaces: tuple[Space, ...]
    """The spaces that its tokens may be in, the default first; empty if a sequence is the only one."""
    embeddings: tuple[Embeddings, ...]
    """The ways in which its embeddings can share weights; the first replaces `shared` if not all of them can."""
    settings: tuple[Setting, ...]
    """Keys of the grid that this task has, of those that only some tasks have."""
    head_divisor: int
    """A number that the features of each head must be divisible by, besides what its components need."""

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
        if unknown := [name for slicing in self.slicings for name in slicing.metrics if name not in self.test_metrics]:
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
    def test_metrics(self) -> Mapping[str, Measure]:
        """Metric of a test → what it measures."""
        return {**self.metrics, **self.only_test}

    @property
    def evaluation_settings(self) -> tuple[str, ...]:
        """The settings of an evaluation of a trained run, as keys of the grid."""
        section = "evaluation."
        # `valid_beam` is for validations during training.
        own = (key.removeprefix(section) for key in self.settings if key.startswith(section) and "valid" not in key)
        # A run on parallel text keeps its test translations.
        kept = ["metric"] if self.data is PARALLEL_TEXT else []
        return (*own, *(["corpus"] if self.data.other_reader else []), "split", *kept)
