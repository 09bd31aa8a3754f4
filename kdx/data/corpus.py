"""A corpus as tokens or arrays: what `kdx.grid.sections.Data` names, made once and from then on mapped from the cache.

How a corpus is read depends on its kind; the task says which kind it learns from.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kdx.data.arrays import Counts
from kdx.data.corpora import BUILT_IN
from kdx.data.examples import GeneratedExamples
from kdx.data.text import GeneratedText
from kdx.fingerprint import fingerprint
from kdx.grid.sections import Data
from kdx.tasks import TASKS
from kdx.tasks.definition import Task
from kdx.vocabulary import Split

Tokens = NDArray[np.int32]
HELD_OUT = (Split.VALID, Split.TEST)


class Corpus(Protocol):
    """What a run needs of a corpus of any kind."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that a run reads."""

    @property
    def unigram_loss(self) -> float:
        """Nats per target of the validation data under the unigram distribution of the training data's targets."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What tells whether scores on it compare, see `kdx.data.facts`."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know of it."""

    @property
    def uncached(self) -> str | None:
        """Why it is not in the cache; None where it is."""


class ReadCorpus(Protocol):
    """Reads a corpus of one kind."""

    def __call__(self, data: Data, home: Path | None, task: Task) -> Corpus:
        """The corpus that `data` names, for `task`, from the data home; None: the user's.

        Raises:
            KdxError: there is no such corpus of this kind, or a setting does not fit it.
            StorageError: neither the cache nor a temporary file can be written.
        """


def load_corpus(task: str, data: Data, home: Path | None = None) -> Corpus:
    """The corpus that `data` names, in the form that the task learns from; raises what `ReadCorpus` does."""
    known = TASKS[task]
    read: ReadCorpus = known.data.read()
    return read(data, home, known)


@dataclass(frozen=True)
class TokenLists:
    """Lists of token ids of any lengths, laid end to end."""

    flat: Tokens
    """Every token, list after list."""
    offsets: NDArray[np.int64]
    """Where each list begins, and where the last one ends: one more than there are lists."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Tokens:
        return self.flat[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each list."""
        return np.diff(self.offsets)


def token_lists(lists: Iterable[Sequence[int]]) -> TokenLists:
    """These lists, laid end to end."""
    each = [np.asarray(one, np.int32) for one in lists]
    offsets = np.cumsum([0, *map(len, each)], dtype=np.int64)
    return TokenLists(np.concatenate(each) if each else np.zeros(0, np.int32), offsets)


def unigram_loss(counts: Mapping[Split, Counts]) -> float:
    """As `Corpus.unigram_loss`, from how often each target comes in a split; each count + 1."""
    train, valid = counts[Split.TRAIN] + 1, counts[Split.VALID]
    return float(-np.log(train / train.sum()) @ valid / valid.sum())


def cache_key(value: Any) -> str:
    """A name in the cache for whatever JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def corpus_code(reader: str, corpus: str) -> str:
    """The fingerprint of the code that makes this corpus; another corpus or reader leaves it as it is.

    Args:
        reader: the module that reads the corpus.
    """
    return fingerprint({reader, *generator_of(corpus)}).sha256


def generator_of(corpus: str) -> tuple[str, ...]:
    """The module that makes a generated corpus; of any other there is none, and its text has a hash."""
    generated = isinstance(BUILT_IN.get(corpus), GeneratedText | GeneratedExamples)
    return (BUILT_IN.addresses[corpus].partition(":")[0],) if generated else ()
