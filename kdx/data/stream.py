"""Loads plain text as one stream of tokens for each split, for sequence prediction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kdx.data.arrays import Counts, Tokens, map_array, write_array
from kdx.data.cache import cached
from kdx.data.corpus import Corpus, unigram_loss
from kdx.data.facts import predicted_facts, split_facts
from kdx.data.find_text import FoundText, find_kind
from kdx.data.text_corpus import learn, other_text_key, spelling_of, text_key, vocabularies
from kdx.data.vocabulary import END, Vocabulary, count_words
from kdx.grid.sections import Data
from kdx.tasks.data_kinds import PLAIN_TEXT
from kdx.tasks.definition import Task
from kdx.vocabulary import Split


@dataclass(frozen=True)
class StreamCorpus(Corpus):
    """A corpus for sequence prediction: the concatenated lines. Facts: `vocabulary_size`, `test/unknown_rate`, …"""

    vocabulary: Vocabulary
    splits: Mapping[Split, Tokens]
    """The tokens of all lines, with one end token after each line, even an empty one."""
    training: Tokens
    """The tokens of the training text, also when an evaluation replaces every split by another text."""
    words: Mapping[Split, int]
    """Number of words and line ends in a split; perplexity per word divides by it, whatever the vocabulary."""
    title: str | None = None
    """Regular expression of the first line of a document of the held-out text; None if it has no documents."""


def load_stream(data: Data, home: Path | None = None, task: Task | None = None) -> StreamCorpus:
    """Load the corpus that `data` names, as one stream of tokens for each split.

    Raises:
        KdxError: the corpus does not exist or is parallel text, or a setting does not fit it.
        StorageError: the cache cannot be written.
    """
    text = find_kind(data, home, PLAIN_TEXT)

    def make(folder: Path) -> dict[str, Any]:
        words = {split: count_words(text.lines(split, *text.suffixes)) for split in Split}
        (learned,) = learn(text, data, folder, [words[Split.TRAIN]])
        counts = {split: _write_stream(text, split, learned, folder) for split in Split}
        return {
            "words": {split: words[split].total() + int(counts[split][END]) for split in Split},
            "unigram_loss": unigram_loss(counts),
            "facts": predicted_facts(text, data, learned, counts, words[Split.TRAIN]),
        }

    cache = cached(home, text_key(__name__, text, data), make)
    (words,) = vocabularies(text, data, cache.folder)
    splits = {split: map_array(cache.folder / f"{split}.npy") for split in Split}
    return StreamCorpus(
        vocabulary=words,
        splits=splits,
        training=splits[Split.TRAIN],
        words={split: cache.facts["words"][split] for split in Split},
        fingerprint=cache.fingerprint,
        unigram_loss=cache.facts["unigram_loss"],
        facts=cache.facts["facts"],
        title=text.title,
    )


def load_other_stream(
    data: Data, trained: Data, corpus: StreamCorpus, split: Split, home: Path | None = None
) -> StreamCorpus:
    """Return a copy of `corpus` in which a split is that of another text, in the tokens of `corpus`.

    Args:
        data: data that name the other text.
        trained: data of `corpus`, whose training words spell unknown tokens.

    Raises:
        KdxError: the text does not exist, or is not plain text.
        StorageError: the cache cannot be written.
    """
    text = find_kind(data, home, PLAIN_TEXT)

    def make(folder: Path) -> dict[str, Any]:
        counts = _write_stream(text, split, corpus.vocabulary, folder)
        words = count_words(text.lines(split, *text.suffixes)).total() + int(counts[END])
        facts = split_facts(text, split, corpus.vocabulary, counts, spelling_of(trained, home))
        return {"words": words, "facts": facts}

    cache = cached(home, other_text_key(__name__, text, trained, [corpus.vocabulary], split), make)
    return replace(
        corpus,
        splits={**corpus.splits, split: map_array(cache.folder / f"{split}.npy")},
        words={**corpus.words, split: cache.facts["words"]},
        title=text.title,
        facts={**corpus.facts, **cache.facts["facts"]},
        fingerprint=cache.fingerprint,
    )


def _write_stream(text: FoundText, split: Split, words: Vocabulary, folder: Path) -> Counts:
    """Write one split into `folder` and return the number of times that each token occurs."""
    with write_array(folder / f"{split}.npy", below=words.size) as ids:
        for line in text.lines(split, *text.suffixes):
            ids.extend([*words.encode(line), END])
    return ids.counts
