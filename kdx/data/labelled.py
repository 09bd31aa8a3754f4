"""Labelled text for classification: the label of a line of `train.txt` is in the same line of `train.labels`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdx.data.arrays import Counts, TokenLists, map_array, map_lists, write_array, write_lists
from kdx.data.cache import cached
from kdx.data.corpus import HELD_OUT, Corpus, unigram_loss
from kdx.data.facts import predicted_facts, text_hash
from kdx.data.find_text import FoundText, find_kind
from kdx.data.text_corpus import learn, note_on_left_out, text_key, vocabularies
from kdx.data.vocabulary import BEGIN, Vocabulary, count_words
from kdx.errors import KdxError
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.grid.sections import Data
from kdx.tasks.data_kinds import LABELLED_TEXT
from kdx.tasks.definition import Task
from kdx.vocabulary import Split

MOST_LABELS = 10_000
"""The most labels; a text with more probably has something else in the files of labels, such as its lines."""


@dataclass(frozen=True)
class LabelledText:
    """One split, line by line."""

    lines: TokenLists
    """Token lists, each with the begin token first."""
    labels: NDArray[np.int32]
    """(N,): index of each line's label."""


@dataclass(frozen=True)
class LabelledCorpus(Corpus):
    """A corpus for classification. The fact `test/text` covers the lines with their labels."""

    vocabulary: Vocabulary
    labels: tuple[str, ...]
    """The labels of the training text, in alphabetical order."""
    splits: Mapping[Split, LabelledText]


def load_labelled(data: Data, home: Path | None = None, task: Task | None = None) -> LabelledCorpus:
    """Load the corpus that `data` names, as token lists with labels.

    Training lines of more than `max_tokens` tokens are left out.

    Raises:
        KdxError: the corpus does not exist or is not labelled, a label of another split occurs in no training line (an
            empty line is a label), or a line of the other splits is too long.
        StorageError: the cache cannot be written.
    """
    both = find_kind(data, home, LABELLED_TEXT)
    text = replace(both, suffixes=("txt",))

    def make(folder: Path) -> dict[str, Any]:
        labels = _labels_of(both, data)
        words = count_words(text.lines(Split.TRAIN, "txt"))
        (vocabulary,) = learn(text, data, folder, [words])
        written = {split: _write(both, data, split, vocabulary, labels, folder) for split in Split}
        facts = predicted_facts(
            text, data, vocabulary, {split: counts.tokens for split, counts in written.items()}, words
        )
        for split in HELD_OUT:
            pairs = zip(both.lines(split, "labels"), both.lines(split, "txt"), strict=True)
            facts[f"{split}/text"] = text_hash(f"{label.strip()} {line}" for label, line in pairs)
        return {
            "labels": labels,
            "left_out": written[Split.TRAIN].left_out,
            "unigram_loss": unigram_loss({split: counts.labels for split, counts in written.items()}),
            "facts": facts,
        }

    cache = cached(home, text_key(__name__, both, data, data.max_tokens), make)
    (vocabulary,) = vocabularies(text, data, cache.folder)
    splits = {
        split: LabelledText(map_lists(cache.folder / f"{split}.lines"), map_array(cache.folder / f"{split}.labels.npy"))
        for split in Split
    }
    why = "lines are left out; they have"
    return LabelledCorpus(
        vocabulary=vocabulary,
        labels=tuple(cache.facts["labels"]),
        splits=splits,
        fingerprint=cache.fingerprint,
        unigram_loss=cache.facts["unigram_loss"],
        facts=cache.facts["facts"],
        notes=note_on_left_out(data, cache.facts["left_out"], len(splits[Split.TRAIN].labels), why),
    )


@dataclass(frozen=True)
class _Written:
    tokens: Counts
    """Number of times that each token occurs."""
    labels: Counts
    """Number of times that each label occurs."""
    left_out: int
    """Number of lines that were left out."""


def _labels_of(text: FoundText, data: Data) -> list[str]:
    """Return the labels of the training text, sorted."""
    labels = Counter(line.strip() for line in text.lines(Split.TRAIN, "labels"))
    if not 2 <= len(labels) <= MOST_LABELS:
        allowed = f"2 to {MOST_LABELS:,}"
        problem = f"the training text of `{data.corpus}` has {len(labels):,} different labels"
        raise KdxError(problem, place="data.corpus", allowed=allowed)
    return sorted(labels)


def _write(text: FoundText, data: Data, split: Split, words: Vocabulary, labels: list[str], folder: Path) -> _Written:
    """Writes one split into `folder`."""
    most = max(MAX_POSITIONS, data.max_tokens)
    index = {label: number for number, label in enumerate(labels)}
    left_out = 0
    with (
        write_lists(folder / f"{split}.lines", below=words.size) as lines,
        write_array(folder / f"{split}.labels.npy", below=len(labels)) as written,
    ):
        pairs = zip_longest(text.lines(split, "txt"), text.lines(split, "labels"))
        for number, (line, label) in enumerate(pairs, 1):
            where = f"line {number:,} of {split} of `{data.corpus}`"
            if line is None or label is None or label.strip() not in index:
                problem = f"{where} has the label `{(label or '').strip()}`, which no training line has"
                raise KdxError(problem, place="data.corpus", allowed=labels)
            tokens = [BEGIN, *words.encode(line)]
            if split is Split.TRAIN and len(tokens) > data.max_tokens:
                left_out += 1
                continue
            if len(tokens) > most:
                allowed = f"at most {most:,}, of which the first begins the line"
                raise KdxError(f"{where} has {len(tokens):,} tokens", place="data.corpus", allowed=allowed)
            lines.append(tokens)
            written.extend([index[label.strip()]])
    if not written.counts.any():
        raise KdxError(f"no training line has at most {data.max_tokens} tokens", place="data.max_tokens")
    return _Written(lines.counts, written.counts, left_out)
