"""Loads plain text as one stream of tokens for each split, for sequence prediction."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.data.arrays import Counts, map_array, write_array
from kdx.data.cache import cached
from kdx.data.corpus import Tokens, unigram_loss
from kdx.data.find_text import FoundText
from kdx.data.storage import data_home
from kdx.data.text_corpus import find_kind, learn, predicted_facts, text_key, vocabularies
from kdx.data.vocabulary import END, Vocabulary, count_words
from kdx.grid.sections import Data
from kdx.tasks.data_kinds import PLAIN_TEXT
from kdx.tasks.definition import Task
from kdx.vocabulary import Split


@dataclass(frozen=True)
class StreamCorpus:
    """A corpus for sequence prediction: the concatenated lines."""

    vocabulary: Vocabulary
    splits: Mapping[Split, Tokens]
    """The tokens of all lines, with one end token after each line, even an empty one."""
    training: Tokens
    """The tokens of the training text; of it too where an evaluation puts another text in the place of every split."""
    words: Mapping[Split, int]
    """Number of words and line ends in a split, by which perplexity per word divides for any vocabulary."""
    fingerprint: str
    """SHA-256 over the tokens and what each token is."""
    unigram_loss: float
    """Nats per token of the validation text under the training text's unigrams, with 1 added to counts."""
    facts: Mapping[str, Any]
    """Facts by which scores compare, see `kdx.data.facts`: `vocabulary_size`, `test/unknown_rate`, …"""
    title: str | None = None
    """Regular expression of the line with which a document of the held-out text begins; None: it has no documents."""
    notes: tuple[str, ...] = ()
    """Remarks for readers of the results."""
    uncached: str | None = None
    """Why the corpus is not in the cache; None if it is."""


def load_stream(data: Data, home: Path | None = None, task: Task | None = None) -> StreamCorpus:
    """The corpus that `data` names, as one stream of tokens for each split.

    Raises:
        KdxError: there is no such corpus, it is parallel text, or a setting does not fit it.
        StorageError: neither the cache nor a temporary file can be written.
    """
    home = home or data_home()
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

    with cached(home, text_key(__name__, text, data), make) as cache:
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
            uncached=cache.uncached,
        )


def _write_stream(text: FoundText, split: Split, words: Vocabulary, folder: Path) -> Counts:
    """Writes one split into `folder` and returns how often each token occurs."""
    with write_array(folder / f"{split}.npy", below=words.size) as ids:
        for line in text.lines(split, *text.suffixes):
            ids.extend([*words.encode(line), END])
    return ids.counts
