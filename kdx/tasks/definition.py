"""What kdx knows of a task: said once, in the task's own file, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kdx.definitions import Option, imported
from kdx.vocabulary import Attention, Direction, Embeddings, Space


@dataclass(frozen=True, kw_only=True)
class DataKind:
    """The kind of data that a task learns from, and how a corpus of that kind is read."""

    word: str
    """Such as `parallel text`."""
    items: str
    """What an example is called, in the plural."""
    reader: str
    """`module:function` that reads a corpus of this kind, a `kdx.data.corpus.ReadCorpus`; imported when it is used."""
    other_reader: str | None = None
    """`module:function` that reads one split of another text with the vocabulary of a corpus of this kind; None: there
    is no such text."""
    text: bool = True
    """Whether it is text, which has a vocabulary; else it is generated examples."""
    suffixes: tuple[str, ...] | None = None
    """Of its files, where they are the same in every corpus; None: those of two languages, or there are no files."""
    streams: bool = False
    """Whether it is read as streams, from end to end; else each item is read whole."""
    dictionaries: bool = False
    """Whether each of its languages may have a vocabulary of its own."""

    def read(self) -> Any:
        """The `kdx.data.corpus.ReadCorpus` of this kind."""
        return imported(self.reader)

    def read_other(self) -> Any:
        """Its function, see `kdx.data.other_text`."""
        assert self.other_reader is not None
        return imported(self.other_reader)


@dataclass(frozen=True, kw_only=True)
class Slicing:
    """A respect in which the targets of a test differ in difficulty, whatever the corpus (`kdx.data.difficulty`)."""

    respect: str
    """As metrics have it: `context` in `perplexity/context=5-8`."""
    title: str
    """What number of a target it is."""
    metrics: tuple[str, ...]
    """The metrics that a test measures by slice."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task. Everything that depends on the task, and is not in its own files, asks this."""

    word: str
    title: str
    """In a few words."""
    data: DataKind
    metrics: Mapping[str, Direction]
    """What a validation can give, and which end of each is good; the first selects unless said otherwise."""
    only_test: Mapping[str, Direction] = field(default_factory=dict)
    """What a test gives beside them."""
    slicings: tuple[Slicing, ...] = ()
    """The respects by which a test gives some of its metrics by slice as well."""
    attentions: tuple[Attention, ...]
    spaces: tuple[Space, ...] = ()
    """In which its tokens may be seen, its own first; none: text, which is a sequence and nothing else."""
    embeddings: tuple[Embeddings, ...]
    """The ways in which its embeddings can be one; the first stands for `shared` where they cannot all be."""
    settings: tuple[str, ...] = ()
    """Dotted keys of the grid that not every task has, but this one."""
    options: tuple[Option, ...] = ()
    """Keys of the grid that it brings along."""
    head_divisor: int = 1
    """What each head's features must divide by, beside what its parts ask for."""
    module: str
    """`module:Class` of its `kdx.training.module.TaskModule`; imported when a run is trained."""

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

    def module_class(self) -> Any:
        """The `type[kdx.training.module.TaskModule]` with its loss, evaluation, batches and model; imports torch."""
        return imported(self.module)
