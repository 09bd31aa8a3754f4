"""Text to token ids and back: whole words, or byte pairs learned on source and target together.

Four ids are no text: padding, begin, end, unknown. A text cannot spell them, whatever its words are, except that the
word `<unk>`, by which published corpora such as WikiText mark their rare words, is the unknown token of a word
vocabulary.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

from kdx import axes
from kdx.errors import KdxError

PADDING, BEGIN, END, UNKNOWN = range(4)
SPECIAL = 4
"""How many ids stand before those of the text."""

_UNKNOWN_WORD = "<unk>"


class Vocabulary(ABC):
    """What a token is. Ids run from 0 to `size` - 1."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of ids, special ones included."""

    @abstractmethod
    def encode(self, line: str) -> list[int]:
        """The ids of a line's words, without begin and end."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Words with one space between them, up to the first end token; padding and begin are skipped."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """All that makes it this vocabulary, as JSON has it."""

    def save(self, path: Path) -> None:
        """Writes it as JSON; `load` reads it."""
        path.write_text(json.dumps(self.fields(), ensure_ascii=False), encoding="utf-8")


def load(path: Path) -> Vocabulary:
    """The vocabulary that `save` wrote to `path`."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    if "merges" in fields:
        return BytePairVocabulary(fields["pieces"], [(left, right) for left, right in fields["merges"]])
    return WordVocabulary(fields["words"])


def learn(kind: axes.Vocabulary, lines: Sequence[str], size: int | None) -> Vocabulary:
    """The vocabulary of a training text: at most `size` tokens, special ones included; None is no limit (words only).

    Raises:
        KdxError: `size` is too small for the text.
    """
    return BytePairVocabulary.learn(lines, size) if kind is axes.Vocabulary.BPE else WordVocabulary.learn(lines, size)


class WordVocabulary(Vocabulary):
    """A token is a word; a word not seen in training is unknown."""

    def __init__(self, words: Sequence[str]) -> None:
        """`words` by id, from the first id after the special ones."""
        self._words = tuple(words)
        self._ids = {word: id for id, word in enumerate(words, SPECIAL)}

    @classmethod
    def learn(cls, lines: Iterable[str], size: int | None) -> "WordVocabulary":
        """The most frequent words first; of two as frequent, the one that sorts first."""
        if size is not None and size <= SPECIAL:
            raise _too_small(size, SPECIAL + 1)
        counts = Counter(word for line in lines for word in line.split())
        del counts[_UNKNOWN_WORD]
        words = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(words if size is None else words[: size - SPECIAL])

    @property
    def size(self) -> int:
        return SPECIAL + len(self._words)

    def encode(self, line: str) -> list[int]:
        return [self._ids.get(word, UNKNOWN) for word in line.split()]

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(_UNKNOWN_WORD if id == UNKNOWN else self._words[id - SPECIAL] for id in _text_ids(ids))

    def fields(self) -> dict[str, Any]:
        return {"words": self._words}


class BytePairVocabulary(Vocabulary):
    """A token is a piece of a word, learned by merging the most frequent pair of pieces again and again.

    [Sennrich et al. 2016.] The mark at the end of a word is a space of its own, which merges like any letter. So pieces
    put together are the text again, no word can hold the mark, and a letter never seen at the end of a word is known
    there all the same. A letter never seen at all is unknown.
    """

    def __init__(self, pieces: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        """`pieces` by id, from the first id after the special ones; `merges` in the order they were learned."""
        self._pieces = tuple(pieces)
        self._merges = tuple(merges)
        self._words: dict[str, list[int]] = {}  # those met so far

    @classmethod
    def learn(cls, lines: Sequence[str], size: int | None) -> "BytePairVocabulary":
        """Merges until there are `size` tokens, or until no pair occurs twice."""
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        assert size is not None, "the grid asks byte pairs for a size"
        texts = [" ".join(line.split()) + " " for line in lines]
        letters = set().union(*texts)
        if size < SPECIAL + len(letters):
            raise _too_small(size, SPECIAL + len(letters))
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        trainer = trainers.BpeTrainer(
            vocab_size=size, min_frequency=2, special_tokens=_special_pieces(), show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
        model = json.loads(tokenizer.to_str())["model"]
        pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
        return cls(pieces[SPECIAL:], [(left, right) for left, right in model["merges"]])

    @property
    def size(self) -> int:
        return SPECIAL + len(self._pieces)

    def encode(self, line: str) -> list[int]:
        return [id for word in line.split() for id in self._word(word)]

    def decode(self, ids: Iterable[int]) -> str:
        pieces = (_UNKNOWN_WORD if id == UNKNOWN else self._pieces[id - SPECIAL] for id in _text_ids(ids))
        return " ".join("".join(pieces).split())

    def fields(self) -> dict[str, Any]:
        return {"pieces": self._pieces, "merges": self._merges}

    def _word(self, word: str) -> list[int]:
        if word not in self._words:
            self._words[word] = self._tokenizer.encode(f"{word} ").ids
        return self._words[word]

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer, models

        ids = {piece: id for id, piece in enumerate((*_special_pieces(), *self._pieces))}
        return Tokenizer(models.BPE(vocab=ids, merges=list(self._merges), unk_token=_special_pieces()[UNKNOWN]))


def _special_pieces() -> list[str]:
    # No piece of text begins with a space and goes on, so none can ever be one of these.
    return [f" {id}" for id in range(SPECIAL)]


def _text_ids(ids: Iterable[int]) -> Iterator[int]:
    """Those that are text or unknown, up to the first end."""
    return (id for id in takewhile(lambda id: id != END, ids) if id not in (PADDING, BEGIN))


def _too_small(size: int, least: int) -> KdxError:
    return KdxError(
        f"a vocabulary of {size} tokens is too small for this text",
        place="data.vocabulary_size",
        allowed=f"{least} or more",
    )
