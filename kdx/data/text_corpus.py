"""Shared code of text corpora: learning and loading vocabularies, and keys in the cache."""

from collections import Counter
from importlib.metadata import version
from pathlib import Path

from kdx.data import vocabulary
from kdx.data.cache import cache_key
from kdx.data.corpus import corpus_code
from kdx.data.facts import Spelling, vocabulary_facts
from kdx.data.find_text import FoundText, find_text
from kdx.data.vocabulary import Vocabulary, count_words
from kdx.fingerprint import fingerprint
from kdx.grid.sections import Data
from kdx.vocabulary import Dictionaries, Split, VocabularyKind


def learn(text: FoundText, data: Data, folder: Path, counts: list[Counter[str]]) -> list[Vocabulary]:
    """Learns the vocabulary of each language from its training text, and saves it in `folder`."""
    learned = vocabulary.learn(data, counts)
    for name, words in dict(zip(_vocabulary_names(text, data), learned, strict=True)).items():
        words.save(folder / name)
    return learned


def vocabularies(text: FoundText, data: Data, folder: Path) -> list[Vocabulary]:
    """Loads the vocabularies that `learn` saved in `folder`."""
    names = _vocabulary_names(text, data)
    by_name = {name: vocabulary.load(folder / name) for name in set(names)}
    return [by_name[name] for name in names]


def _vocabulary_names(text: FoundText, data: Data) -> list[str]:
    if data.dictionaries is Dictionaries.SEPARATE:
        return [f"vocabulary.{suffix}.json" for suffix in text.suffixes]
    return ["vocabulary.json"] * len(text.suffixes)


def note_on_left_out(data: Data, left_out: int, kept: int, why: str) -> tuple[str, ...]:
    """Return a note on the training items that are not in the corpus, if there are any.

    Args:
        why: words of the note between the number of training items and `more than n tokens`.
    """
    if not left_out:
        return ()
    share = f"{left_out:,} of {left_out + kept:,} training {why} more than {data.max_tokens:,} tokens"
    return (f"{data.corpus}: {share} (data.max_tokens)",)


def spelling_of(data: Data, home: Path | None) -> Spelling:
    """Return the spelling of the words of a training text, in the language that is predicted."""
    text = find_text(data, home)
    return Spelling(count_words(text.lines(Split.TRAIN, text.suffixes[-1])))


def text_key(reader: str, text: FoundText, data: Data, *settings: int) -> str:
    """Return the cache key of a text, which depends on the text, the settings, and the code that makes the tokens.

    Args:
        reader: module that reads the corpus.
    """
    library = None if data.vocabulary is VocabularyKind.WORD else version("tokenizers")
    wanted = [data.vocabulary, data.vocabulary_size, data.merges, data.dictionaries, data.train_lines, *settings]
    return cache_key([text.identity, text.suffixes, wanted, library, corpus_code(reader, data.corpus)])


def other_text_key(reader: str, text: FoundText, trained: Data, vocabularies: list[Vocabulary], split: Split) -> str:
    """Return the cache key of one split of a text in the tokens of another text, on which a run was trained.

    Args:
        reader: module that reads the text.
    """
    words = [vocabulary_facts(vocabulary)["vocabulary"] for vocabulary in vocabularies]
    code = fingerprint({reader}).sha256
    return cache_key([text.identity, text.suffixes, trained.model_dump(mode="json"), words, split, code])
