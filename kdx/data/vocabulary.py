"""Text to token ids and back: whole words, or byte pairs learned on source and target together.

Four ids are no text: padding, begin, end, unknown. A text cannot spell them, whatever its words are, except that the
word `<unk>`, by which published corpora such as WikiText mark their rare words, is the unknown token of a word
vocabulary.

Ids are by frequency in the training text, as an adaptive softmax needs them, in a word vocabulary and in one of
subword-nmt; those of `bpe` are letters first and then by merge, the earliest first.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat, takewhile
from pathlib import Path
from typing import Any, ClassVar, Self

from kdx.data.merges import MARK, learn_merges, letters_of
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.vocabulary import Dictionaries, VocabularyKind

PADDING, BEGIN, END, UNKNOWN = range(4)
SPECIAL = 4
"""How many ids stand before those of the text."""

_UNKNOWN_WORD = "<unk>"
_REMEMBERED = 1 << 20  # words whose pieces are kept at hand

Counts = Mapping[str, int]


class Vocabulary(ABC):
    """What a token is. Ids run from 0 to `size` - 1."""

    kind: ClassVar[VocabularyKind]

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of ids, special ones included."""

    @abstractmethod
    def encode(self, line: str) -> list[int]:
        """The ids of a line's words, without begin and end."""

    @abstractmethod
    def unknown(self, word: str) -> list[str]:
        """The text that each unknown token of a word stands for; together with the known ones it is the word again."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Words with one space between them, up to the first end token; padding and begin are skipped."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """All that makes it this vocabulary of its kind, as JSON has it."""

    def save(self, path: Path) -> None:
        """Writes it as JSON; `load` reads it."""
        path.write_text(json.dumps({"kind": self.kind, **self.fields()}, ensure_ascii=False), encoding="utf-8")


def load(path: Path) -> Vocabulary:
    """The vocabulary that `save` wrote to `path`."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    found: Vocabulary = _KINDS[fields.pop("kind")](**fields)
    return found


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def learn(data: Data, texts: Sequence[Counts]) -> list[Vocabulary]:
    """The vocabulary of each of these training texts, told by their words; one and the same where they share it.

    Byte pairs are learned on all texts together even where each has tokens of its own.

    Raises:
        KdxError: the vocabulary's size is too small for the text.
    """
    together: Counter[str] = Counter()
    for text in texts:
        together.update(text)
    joint = data.dictionaries is Dictionaries.JOINT
    wanted = [together] if joint else texts
    found: list[Vocabulary]
    match data.vocabulary:
        case VocabularyKind.WORD:
            found = [WordVocabulary.learn(counts, data.vocabulary_size) for counts in wanted]
        case VocabularyKind.BPE:
            assert data.vocabulary_size is not None, "the grid asks byte pairs for a size"
            shared = BytePairVocabulary.learn(together, data.vocabulary_size)
            found = [shared] if joint else [shared.restricted_to(counts) for counts in wanted]
        case VocabularyKind.SUBWORD_NMT:
            assert data.merges is not None, "the grid asks subword-nmt for its merges"
            merges = learn_merges(together, data.merges)
            found = [SubwordNmtVocabulary.of(merges, counts) for counts in wanted]
    return found * len(texts) if joint else found


class WordVocabulary(Vocabulary):
    """A token is a word; a word not seen in training is unknown.

    The literature counts a text's distinct words, `<unk>` among them, and the end of a line: 33,278 of WikiText-2,
    267,735 of WikiText-103. Here those two are special ids, so without a limit `size` is two more: padding and begin.
    """

    kind = VocabularyKind.WORD

    def __init__(self, words: Sequence[str]) -> None:
        """`words` by id, from the first id after the special ones."""
        self._words = tuple(words)

    @classmethod
    def learn(cls, counts: Counts, size: int | None) -> Self:
        """The most frequent words first; of two as frequent, the one that sorts first. `size` is of all ids."""
        if size is not None and size <= SPECIAL:
            raise _too_small(size, SPECIAL + 1)
        words = [word for word in _by_frequency(counts) if word != _UNKNOWN_WORD]
        return cls(words if size is None else words[: size - SPECIAL])

    @property
    def size(self) -> int:
        return SPECIAL + len(self._words)

    def encode(self, line: str) -> list[int]:
        return list(map(self._ids.get, line.split(), repeat(UNKNOWN)))

    def unknown(self, word: str) -> list[str]:
        return [] if word in self._ids else [word]

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(_UNKNOWN_WORD if id == UNKNOWN else self._words[id - SPECIAL] for id in _text_ids(ids))

    def fields(self) -> dict[str, Any]:
        return {"words": self._words}

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: id for id, word in enumerate(self._words, SPECIAL)}


class BytePairVocabulary(Vocabulary):
    """A token is a piece of a word, learned by merging the most frequent pair of pieces again and again.

    [Sennrich et al. 2016.] The mark at the end of a word is a space of its own, which merges like any letter. So pieces
    put together are the text again, no word can hold the mark, and a letter never seen at the end of a word is known
    there all the same. A letter never seen at all is unknown.
    """

    kind = VocabularyKind.BPE

    def __init__(self, pieces: Sequence[str], merges: Sequence[Sequence[str]]) -> None:
        """`pieces` by id, from the first id after the special ones; `merges` in the order they were learned.

        Merges may make pieces that are not among `pieces`; those are unknown.
        """
        self._pieces = tuple(pieces)
        self._merges = [(left, right) for left, right in merges]

    @classmethod
    def learn(cls, counts: Counts, size: int) -> Self:
        """Merges until there are `size` tokens, or until no pair occurs twice."""
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        letters = {MARK}.union(*counts)
        if size < SPECIAL + len(letters):
            raise _too_small(size, SPECIAL + len(letters))
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Split(MARK, "merged_with_previous")
        trainer = trainers.BpeTrainer(
            vocab_size=size, min_frequency=2, special_tokens=_special_pieces(), show_progress=False
        )
        tokenizer.train_from_iterator(_written_out(counts), trainer)
        model = json.loads(tokenizer.to_str())["model"]
        pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
        return cls(pieces[SPECIAL:], model["merges"])

    def restricted_to(self, counts: Counts) -> Self:
        """The same merges, with those pieces alone that a text of these words holds."""
        there = self._count(counts)
        return type(self)([piece for piece in self._pieces if piece in there], self._merges)

    @property
    def size(self) -> int:
        return SPECIAL + len(self._pieces)

    def encode(self, line: str) -> list[int]:
        return list(chain.from_iterable(map(self._words.__getitem__, line.split())))

    def unknown(self, word: str) -> list[str]:
        found, marked = self._segmented(word), word + MARK
        # The last piece bears the mark, whether the tokenizer was given it or adds it by itself.
        stops = [*(stop for _, stop in found.offsets[:-1]), len(marked)]
        return [
            marked[start:stop]
            for token, (start, _), stop in zip(found.tokens, found.offsets, stops, strict=True)
            if token not in self._ids
        ]

    def decode(self, ids: Iterable[int]) -> str:
        # Where the mark is no piece of its own, an unknown piece may have borne it.
        unknown = _UNKNOWN_WORD if MARK in self._ids else _UNKNOWN_WORD + MARK
        pieces = (unknown if id == UNKNOWN else self._pieces[id - SPECIAL] for id in _text_ids(ids))
        return " ".join("".join(pieces).split())

    def fields(self) -> dict[str, Any]:
        return {"pieces": self._pieces, "merges": self._merges}

    def segment(self, word: str) -> list[str]:
        """The pieces of a word. What stands for a letter never seen is no text."""
        tokens: list[str] = self._segmented(word).tokens
        return tokens

    def _segmented(self, word: str) -> Any:
        return self._tokenizer.encode(word + MARK)

    def _count(self, counts: Counts) -> Counter[str]:
        found: Counter[str] = Counter()
        for word, times in counts.items():
            for piece in self.segment(word):
                found[piece] += times
        return found

    def _ids_of(self, word: str) -> tuple[int, ...]:
        return tuple(self._ids.get(piece, UNKNOWN) for piece in self.segment(word))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {piece: id for id, piece in enumerate(self._pieces, SPECIAL)}

    @cached_property
    def _words(self) -> "_Remembered":
        return _Remembered(self._ids_of)

    @cached_property
    def _tokenizer(self) -> Any:
        return self._make_tokenizer()

    def _make_tokenizer(self, **settings: Any) -> Any:
        from tokenizers import Tokenizer, models

        made = chain.from_iterable((left, right, left + right) for left, right in self._merges)
        pieces = dict.fromkeys((*_special_pieces(), *filter(None, self._pieces), *made))
        ids = {piece: id for id, piece in enumerate(pieces)}
        return Tokenizer(models.BPE(ids, self._merges, unk_token=_special_pieces()[UNKNOWN], **settings))


class SubwordNmtVocabulary(BytePairVocabulary):
    """Byte pairs as subword-nmt learns them, and the list of pieces that fairseq makes of the text so segmented.

    The last letter of a word bears the mark from the start, so it is another token than the same letter elsewhere.
    The pieces of the training text are listed by frequency. As in fairseq, empty entries fill the list up to a multiple
    of eight; so on IWSLT'14 the sizes are the published ones, and the numbers of parameters too.
    """

    kind = VocabularyKind.SUBWORD_NMT

    @classmethod
    def of(cls, merges: Sequence[tuple[str, str]], counts: Counts) -> Self:
        """The pieces that the merges leave of a text of these words."""
        letters = dict.fromkeys(letter for word in counts for letter in letters_of(word))
        pieces = _by_frequency(cls(list(letters), merges)._count(counts))
        filled = -(len(pieces) + SPECIAL) % 8
        return cls([*pieces, *[""] * filled], merges)

    def _segmented(self, word: str) -> Any:
        return self._tokenizer.encode(word)

    @cached_property
    def _tokenizer(self) -> Any:
        return self._make_tokenizer(end_of_word_suffix=MARK)


class _Remembered(dict[str, tuple[int, ...]]):
    """The ids of the words met so far."""

    def __init__(self, ids_of: Callable[[str], tuple[int, ...]]) -> None:
        self._ids_of = ids_of

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= _REMEMBERED:
            self.clear()
        self[word] = self._ids_of(word)
        return self[word]


_KINDS: dict[str, type[Any]] = {of.kind: of for of in (WordVocabulary, BytePairVocabulary, SubwordNmtVocabulary)}


def _by_frequency(counts: Counts) -> list[str]:
    """The most frequent first; of two as frequent, the one that sorts first."""
    return sorted(counts, key=lambda one: (-counts[one], one))


def _written_out(counts: Counts) -> Iterator[str]:
    """Text in which each word occurs so often, in strings that are not too long."""
    for word, times in counts.items():
        whole, rest = divmod(times, 1000)
        yield from [(word + MARK) * 1000] * whole
        yield (word + MARK) * rest


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
