"""Converts text to token ids and back: whole words, or byte pairs learned on source and target together.

Four ids are not text: padding, begin, end, unknown. No word of a text becomes one of them, except that the word
`<unk>`, by which published corpora such as WikiText mark rare words, is the unknown token of a word vocabulary.

Ids of a word vocabulary and of one of subword-nmt are sorted by frequency in the training text, as an adaptive softmax
needs them; ids of `bpe` are letters first, then merges in their order.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, repeat, takewhile
from pathlib import Path
from typing import Any, ClassVar, Self

from kdx.data.merges import MARK, learn_merges, letters_of
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.vocabulary import Dictionaries, VocabularyKind

PADDING, BEGIN, END, UNKNOWN = range(4)
SPECIAL = 4
"""Number of special ids, which come before those of the text."""

UNKNOWN_WORD = "<unk>"
_REMEMBERED = 1 << 20  # words whose pieces are cached

WordCounts = Mapping[str, int]


class Vocabulary(ABC):
    """A mapping between text and token ids, which run from 0 to `size` - 1."""

    kind: ClassVar[VocabularyKind]

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of ids, special ones included."""

    @abstractmethod
    def encode(self, line: str) -> list[int]:
        """Return the ids of a line's words, without begin and end."""

    @abstractmethod
    def unknown(self, word: str) -> list[str]:
        """Return the text of each unknown token of a word; joined with the known tokens it is the word."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Return words with one space between them, up to the first end token; padding and begin are skipped."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Return the JSON fields that define this vocabulary among those of its kind."""

    def save(self, path: Path) -> None:
        """Writes the vocabulary as JSON for `load`."""
        path.write_text(json.dumps({"kind": self.kind, **self.fields()}, ensure_ascii=False), encoding="utf-8")


def load(path: Path) -> Vocabulary:
    """Return the vocabulary that `save` wrote to `path`."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    vocabulary: Vocabulary = _KINDS[fields.pop("kind")](**fields)
    return vocabulary


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Return the number of times that each word occurs."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def learn(data: Data, texts: Sequence[WordCounts]) -> list[Vocabulary]:
    """Learn the vocabulary of each training text from its word counts; the same object for all if it is joint.

    Byte pairs are learned on all texts together even if each text has its own tokens.

    Raises:
        KdxError: the vocabulary's size is too small for the text.
    """
    together: Counter[str] = Counter()
    for text in texts:
        together.update(text)
    joint = data.dictionaries is Dictionaries.JOINT
    by_vocabulary = [together] if joint else texts
    learned: list[Vocabulary]
    match data.vocabulary:
        case VocabularyKind.WORD:
            learned = [WordVocabulary.learn(counts, data.vocabulary_size) for counts in by_vocabulary]
        case VocabularyKind.BPE:
            assert data.vocabulary_size is not None, "the grid asks byte pairs for a size"
            shared = BytePairVocabulary.learn(together, data.vocabulary_size)
            learned = [shared] if joint else [shared.restricted_to(counts) for counts in by_vocabulary]
        case VocabularyKind.SUBWORD_NMT:
            assert data.merges is not None, "the grid asks subword-nmt for its merges"
            merges = learn_merges(together, data.merges)
            learned = [SubwordNmtVocabulary.of(merges, counts) for counts in by_vocabulary]
    return learned * len(texts) if joint else learned


class WordVocabulary(Vocabulary):
    """A token is a word; a word not seen in training is unknown.

    The literature counts a text's distinct words, including `<unk>`, and the end of a line: 33,278 for WikiText-2,
    267,735 for WikiText-103. Here `<unk>` and the end are special ids like padding and begin, so without a limit `size`
    is larger by two.
    """

    kind = VocabularyKind.WORD

    def __init__(self, words: Sequence[str]) -> None:
        """Takes `words` by id, from the first id after the special ones."""
        self._words = tuple(words)

    @classmethod
    def learn(cls, counts: WordCounts, size: int | None) -> Self:
        """Sorts words by frequency, equally frequent ones alphabetically; `size` limits the number of all ids."""
        if size is not None and size <= SPECIAL:
            raise _too_small(size, SPECIAL + 1)
        words = [word for word in _by_frequency(counts) if word != UNKNOWN_WORD]
        return cls(words if size is None else words[: size - SPECIAL])

    @property
    def size(self) -> int:
        return SPECIAL + len(self._words)

    def encode(self, line: str) -> list[int]:
        return list(map(self._ids.get, line.split(), repeat(UNKNOWN)))

    def unknown(self, word: str) -> list[str]:
        return [] if word in self._ids else [word]

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(UNKNOWN_WORD if id == UNKNOWN else self._words[id - SPECIAL] for id in _text_ids(ids))

    def fields(self) -> dict[str, Any]:
        return {"words": self._words}

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: id for id, word in enumerate(self._words, SPECIAL)}


class BytePairVocabulary(Vocabulary):
    """A token is a piece of a word, learned by repeatedly merging the most frequent pair of pieces.

    [Sennrich et al. 2016.] The mark at the end of a word is a separate space, which merges like any letter. So the
    joined pieces are the text, no word contains the mark, and a letter is known at the end of a word even if it was
    never seen there. A letter that was never seen is unknown.
    """

    kind = VocabularyKind.BPE

    def __init__(self, pieces: Sequence[str], merges: Sequence[Sequence[str]]) -> None:
        """Take `pieces` by id, from the first id after the special ones, and `merges` in the order they were learned.

        Merges may make pieces that are not in `pieces`; such pieces are unknown.
        """
        self._pieces = tuple(pieces)
        self._merges = [(left, right) for left, right in merges]

    @classmethod
    def learn(cls, counts: WordCounts, size: int) -> Self:
        """Merges until there are `size` tokens, or until no pair occurs twice."""
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers  # late: few corpora have subwords

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

    def restricted_to(self, counts: WordCounts) -> Self:
        """Return a vocabulary with the same merges, and only the pieces that a text of these words has."""
        occurring = self._count(counts)
        return type(self)([piece for piece in self._pieces if piece in occurring], self._merges)

    @property
    def size(self) -> int:
        return SPECIAL + len(self._pieces)

    def encode(self, line: str) -> list[int]:
        return list(chain.from_iterable(map(self._ids_of, line.split())))

    def unknown(self, word: str) -> list[str]:
        segmented, marked = self._segmented(word), word + MARK
        # The last piece has the mark, either from the input or added by the tokenizer.
        stops = [*(stop for _, stop in segmented.offsets[:-1]), len(marked)]
        return [
            marked[start:stop]
            for token, (start, _), stop in zip(segmented.tokens, segmented.offsets, stops, strict=True)
            if token not in self._ids
        ]

    def decode(self, ids: Iterable[int]) -> str:
        # If the mark is not a separate piece, an unknown piece may have had it.
        unknown = UNKNOWN_WORD if MARK in self._ids else UNKNOWN_WORD + MARK
        pieces = (unknown if id == UNKNOWN else self._pieces[id - SPECIAL] for id in _text_ids(ids))
        return " ".join("".join(pieces).split())

    def fields(self) -> dict[str, Any]:
        return {"pieces": self._pieces, "merges": self._merges}

    def segment(self, word: str) -> list[str]:
        """Return the pieces of a word; the piece of an unseen letter is a placeholder."""
        tokens: list[str] = self._segmented(word).tokens
        return tokens

    def _segmented(self, word: str) -> Any:
        return self._tokenizer.encode(word + MARK)

    def _count(self, counts: WordCounts) -> Counter[str]:
        pieces: Counter[str] = Counter()
        for word, times in counts.items():
            for piece in self.segment(word):
                pieces[piece] += times
        return pieces

    @cached_property
    def _ids_of(self) -> Callable[[str], tuple[int, ...]]:
        """Word → the ids of its pieces."""

        @lru_cache(_REMEMBERED)
        def ids_of(word: str) -> tuple[int, ...]:
            return tuple(self._ids.get(piece, UNKNOWN) for piece in self.segment(word))

        return ids_of

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {piece: id for id, piece in enumerate(self._pieces, SPECIAL)}

    @cached_property
    def _tokenizer(self) -> Any:
        return self._make_tokenizer()

    def _make_tokenizer(self, **settings: Any) -> Any:
        from tokenizers import Tokenizer, models  # late: few corpora have subwords

        merged = chain.from_iterable((left, right, left + right) for left, right in self._merges)
        pieces = dict.fromkeys((*_special_pieces(), *filter(None, self._pieces), *merged))
        ids = {piece: id for id, piece in enumerate(pieces)}
        return Tokenizer(models.BPE(ids, self._merges, unk_token=_special_pieces()[UNKNOWN], **settings))


class SubwordNmtVocabulary(BytePairVocabulary):
    """Byte pairs as subword-nmt learns them, with the list of pieces that fairseq makes from the segmented text.

    The last letter of a word has the mark from the start, so it differs from the same letter elsewhere. The pieces of
    the training text are sorted by frequency. As in fairseq, empty entries fill the list up to a multiple of eight, so
    that sizes and numbers of parameters on IWSLT'14 are the published ones.
    """

    kind = VocabularyKind.SUBWORD_NMT

    @classmethod
    def of(cls, merges: Sequence[tuple[str, str]], counts: WordCounts) -> Self:
        """Return the vocabulary of the pieces into which the merges divide a text of these words."""
        letters = dict.fromkeys(letter for word in counts for letter in letters_of(word))
        pieces = _by_frequency(cls(list(letters), merges)._count(counts))
        filled = -(len(pieces) + SPECIAL) % 8
        return cls([*pieces, *[""] * filled], merges)

    def _segmented(self, word: str) -> Any:
        return self._tokenizer.encode(word)

    @cached_property
    def _tokenizer(self) -> Any:
        return self._make_tokenizer(end_of_word_suffix=MARK)


_KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (WordVocabulary, BytePairVocabulary, SubwordNmtVocabulary)}


def _by_frequency(counts: WordCounts) -> list[str]:
    """Return words or pieces sorted by frequency, equally frequent ones alphabetically."""
    return sorted(counts, key=lambda word: (-counts[word], word))


def _written_out(counts: WordCounts) -> Iterator[str]:
    """Yield text in which each word has these counts, in strings of limited length."""
    for word, times in counts.items():
        whole, rest = divmod(times, 1000)
        yield from [(word + MARK) * 1000] * whole
        yield (word + MARK) * rest


def _special_pieces() -> list[str]:
    # No piece of text continues after a leading space, so none can equal one of these.
    return [f" {id}" for id in range(SPECIAL)]


def _text_ids(ids: Iterable[int]) -> Iterator[int]:
    """Yield the ids of text or of the unknown token, up to the first end token."""
    return (id for id in takewhile(lambda id: id != END, ids) if id not in (PADDING, BEGIN))


def _too_small(size: int, least: int) -> KdxError:
    return KdxError(
        f"a vocabulary of {size} tokens is too small for this text",
        place="data.vocabulary_size",
        allowed=f"{least} or more",
    )
