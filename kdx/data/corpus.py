"""Loads the corpus that a `kdx.grid.sections.Data` names, as tokens or arrays that are mapped from the cache.

Each kind of corpus has its own reader; the task names the kind that it learns from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kdx.data.arrays import Counts
from kdx.data.cache import cache_key
from kdx.data.examples import GeneratedExamples
from kdx.data.text import GeneratedText
from kdx.fingerprint import fingerprint
from kdx.grid.sections import Data
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN, DIFFICULTIES
from kdx.vocabulary import Split

HELD_OUT = (Split.VALID, Split.TEST)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What every run needs of its corpus, of any kind."""

    fingerprint: str
    """SHA-256 over everything that a run reads."""
    unigram_loss: float
    """Nats per target of the validation data under the distribution of the training data's targets, with 1 added to
    each count."""
    facts: Mapping[str, Any]
    """Facts that decide whether scores compare, see `kdx.data.facts`."""
    notes: tuple[str, ...] = ()
    """Remarks for users, such as on items that were left out."""


def load_corpus(task: str, data: Data, home: Path | None = None) -> Corpus:
    """Load the corpus that `data` names, by the reader of the task's kind of data.

    Args:
        home: the data home; None for the user's.

    Raises:
        KdxError: the corpus does not exist or is of another kind, or a setting does not fit it.
        StorageError: the cache cannot be written.
    """
    known = TASKS.definition(task)
    corpus: Corpus = known.data.read()(data, home, known)
    return corpus


def unigram_loss(counts: Mapping[Split, Counts]) -> float:
    """Return `Corpus.unigram_loss`, from the number of times that each target occurs in a split."""
    train, valid = counts[Split.TRAIN] + 1, counts[Split.VALID]
    return float(-np.log(train / train.sum()) @ valid / valid.sum())


def corpus_code(reader: str, corpus: str) -> str:
    """Return the fingerprint of the code that makes this corpus, which other corpora and readers do not affect.

    Args:
        reader: module that reads the corpus.
    """
    code = fingerprint({reader, *generator_of(corpus)}).sha256
    outside = DIFFICULTIES.outside.get(corpus)
    return code if outside is None else cache_key([code, outside.sha256])


def generator_of(corpus: str) -> tuple[str, ...]:
    """Return the modules of kdx that make a generated corpus; empty for other corpora, whose text has a hash."""
    if corpus in DIFFICULTIES:
        return DIFFICULTIES.modules(corpus)
    generated = isinstance(BUILT_IN.get(corpus), GeneratedText | GeneratedExamples)
    return (BUILT_IN.addresses[corpus].partition(":")[0],) if generated else ()
