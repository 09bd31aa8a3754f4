"""A corpus as tokens or arrays: what `kdx.grid.spec.Data` names, made once and from then on mapped from the cache."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdx import axes
from kdx.axes import Dictionaries, Split, Task
from kdx.data import BUILT_IN, vocabulary
from kdx.data.arrays import Counts, map_array, map_lists, write_array, write_lists
from kdx.data.cache import cached
from kdx.data.examples import Examples, GeneratedExamples
from kdx.data.facts import Spelling, example_facts, text_facts, text_hash, unknown_rate, vocabulary_facts
from kdx.data.find_text import FoundText, corpus_names, find_text
from kdx.data.storage import data_home
from kdx.data.vocabulary import END, Vocabulary, count_words
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.grid.spec import LONGEST

Tokens = NDArray[np.int32]
HELD_OUT = (Split.VALID, Split.TEST)
_TARGETS = "targets"


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


@dataclass(frozen=True)
class ParallelText:
    """One split of a parallel corpus, pair by pair."""

    sources: TokenLists
    """Each ends with the end token."""
    targets: TokenLists
    """Each ends with the end token."""
    references: tuple[str, ...]
    """The target text, words with one space between them: what BLEU compares a translation with. Training has none."""


@dataclass(frozen=True)
class ParallelCorpus:
    """A corpus for translation."""

    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    """Of joint dictionaries both are the same object."""
    splits: Mapping[Split, ParallelText]
    fingerprint: str
    """SHA-256 over the tokens, the references and what each token is."""
    target: str
    """Language translated to: the suffix of its files."""
    tokenised: bool
    """Whether BLEU is to take the words as they are, without a tokeniser of its own."""
    unigram_loss: float
    """Nats per target token of the validation text under the training text's unigram distribution, each count + 1."""
    left_out: int
    """Training pairs that are not in `splits`: a side is empty or too long."""
    facts: Mapping[str, Any]
    """What tells whether scores on it compare, see `kdx.data.facts`: `vocabulary_size`, `test/unknown_rate`, … of the
    target text, `source/vocabulary_size`, `source/test/unknown_rate`, `test/source_text`, … of the source text."""
    uncached: str | None = None
    """Why it is not in the cache; None where it is."""


@dataclass(frozen=True)
class StreamCorpus:
    """A corpus for sequence prediction: every line, one after the other."""

    vocabulary: Vocabulary
    splits: Mapping[Split, Tokens]
    """Each line's tokens and one end token; an empty line is the end token alone."""
    words: Mapping[Split, int]
    """Words of a split and one end a line: what perplexity per word divides by, whatever a token is."""
    fingerprint: str
    """SHA-256 over the tokens and what each token is."""
    unigram_loss: float
    """Nats per token of the validation text under the training text's unigram distribution, each count + 1."""
    facts: Mapping[str, Any]
    """What tells whether scores on it compare, see `kdx.data.facts`: `vocabulary_size`, `test/unknown_rate`, …"""
    uncached: str | None = None
    """Why it is not in the cache; None where it is."""


@dataclass(frozen=True)
class ExampleCorpus:
    """A corpus of examples that are no text."""

    splits: Mapping[Split, Examples]
    tokens: int
    """That the model reads of an example, padding included."""
    fingerprint: str
    """SHA-256 over the examples."""
    unigram_loss: float
    """Nats per target of the validation examples under the distribution of the training targets, each count + 1."""
    facts: Mapping[str, Any]
    """What tells whether scores on it compare, see `kdx.data.facts`: `test/examples`, `test/content`, …"""
    uncached: str | None = None
    """Why it is not in the cache; None where it is."""


Corpus = ParallelCorpus | StreamCorpus | ExampleCorpus


def load_corpus(task: Task, data: Data, home: Path | None = None) -> Corpus:
    """The corpus that `data` names, in the form that the task learns from.

    Raises:
        KdxError: see the three below.
        StorageError: neither the cache nor a temporary file can be written.
    """
    if task is Task.TRANSLATION:
        return load_parallel(data, home)
    return load_stream(data, home) if task is Task.PREDICTION else load_examples(task, data, home)


def load_parallel(data: Data, home: Path | None = None) -> ParallelCorpus:
    """The corpus that `data` names, as pairs of token lists.

    Of the training text only, pairs with an empty side or with more than `max_tokens` tokens on a side (the end token
    included) are left out.

    Raises:
        KdxError: there is no such corpus, it is plain text, a sentence of its other splits is too long to be read, or a
            setting does not fit it.
        StorageError: neither the cache nor a temporary file can be written.
    """
    home = home or data_home()
    text = _find(data, home, parallel=True)

    def make(folder: Path) -> dict[str, Any]:
        train = [count_words(text.lines(Split.TRAIN, suffix)) for suffix in text.suffixes]
        words = _learn(text, data, folder, train)
        written = {split: _write_pairs(text, data, split, words, folder) for split in Split}
        counts = {split: pairs.targets for split, pairs in written.items()}
        if not counts[Split.TRAIN].any():
            problem = f"no training pair has at most {data.max_tokens} tokens on either side"
            raise KdxError(problem, place="data.max_tokens")
        facts = _text_facts(text, data, words[1], counts, train[1])
        facts |= {f"source/{name}": fact for name, fact in vocabulary_facts(words[0]).items()}
        for split in HELD_OUT:
            facts[f"{split}/source_text"] = text_hash(text.lines(split, text.suffixes[0]))
            facts[f"source/{split}/unknown_rate"] = unknown_rate(written[split].sources)
        return {"unigram_loss": _unigram_loss(counts), "left_out": written[Split.TRAIN].left_out, "facts": facts}

    with cached(home, _key(text, data, data.max_tokens), make) as cache:
        source, target = _vocabularies(text, data, cache.folder)
        return ParallelCorpus(
            source_vocabulary=source,
            target_vocabulary=target,
            splits={
                split: ParallelText(
                    sources=TokenLists(*map_lists(cache.folder / f"{split}.source")),
                    targets=TokenLists(*map_lists(cache.folder / f"{split}.target")),
                    references=_references(cache.folder, split),
                )
                for split in Split
            },
            target=text.suffixes[1],
            fingerprint=cache.fingerprint,
            tokenised=text.tokenised,
            unigram_loss=cache.facts["unigram_loss"],
            left_out=cache.facts["left_out"],
            facts=cache.facts["facts"],
            uncached=cache.uncached,
        )


def load_stream(data: Data, home: Path | None = None) -> StreamCorpus:
    """The corpus that `data` names, as one stream of tokens a split.

    Raises:
        KdxError: there is no such corpus, it is parallel text, or a setting does not fit it.
        StorageError: neither the cache nor a temporary file can be written.
    """
    home = home or data_home()
    text = _find(data, home, parallel=False)

    def make(folder: Path) -> dict[str, Any]:
        words = {split: count_words(text.lines(split, *text.suffixes)) for split in Split}
        (learned,) = _learn(text, data, folder, [words[Split.TRAIN]])
        counts = {split: _write_stream(text, split, learned, folder) for split in Split}
        return {
            "words": {split: words[split].total() + int(counts[split][END]) for split in Split},
            "unigram_loss": _unigram_loss(counts),
            "facts": _text_facts(text, data, learned, counts, words[Split.TRAIN]),
        }

    with cached(home, _key(text, data), make) as cache:
        (words,) = _vocabularies(text, data, cache.folder)
        return StreamCorpus(
            vocabulary=words,
            splits={split: map_array(cache.folder / f"{split}.npy") for split in Split},
            words={split: cache.facts["words"][split] for split in Split},
            fingerprint=cache.fingerprint,
            unigram_loss=cache.facts["unigram_loss"],
            facts=cache.facts["facts"],
            uncached=cache.uncached,
        )


def load_examples(task: Task, data: Data, home: Path | None = None) -> ExampleCorpus:
    """The corpus that `data` names, as arrays.

    Raises:
        KdxError: there is no such corpus, or it is not for this task.
        StorageError: neither the cache nor a temporary file can be written.
    """
    made = BUILT_IN.get(data.corpus)
    if not isinstance(made, GeneratedExamples) or made.task is not task:
        allowed = [name for name, kind in BUILT_IN.items() if isinstance(kind, GeneratedExamples) and kind.task is task]
        problem = f"`{data.corpus}` is no corpus of generated examples for task {task}"
        raise KdxError(problem, place="data.corpus", allowed=allowed)
    sizes = {**made.sizes, Split.TRAIN: data.train_examples or made.sizes[Split.TRAIN]}

    def make(folder: Path) -> dict[str, Any]:
        splits = {split: made.generate(data.corpus, data.seed, split, sizes[split]) for split in Split}
        for split, examples in splits.items():
            for name, array in (*examples.inputs.items(), (_TARGETS, examples.targets)):
                np.save(folder / f"{split}.{name}.npy", array)
        counts = {split: np.bincount(splits[split].targets.ravel(), minlength=made.classes) for split in Split}
        facts = {f"{split}/{name}": fact for split in HELD_OUT for name, fact in example_facts(splits[split]).items()}
        return {"inputs": list(splits[Split.TRAIN].inputs), "unigram_loss": _unigram_loss(counts), "facts": facts}

    with cached(home or data_home(), _hash([data.corpus, data.seed, sizes, _code()]), make) as cache:
        return ExampleCorpus(
            splits={
                split: Examples(
                    {name: map_array(cache.folder / f"{split}.{name}.npy") for name in cache.facts["inputs"]},
                    map_array(cache.folder / f"{split}.{_TARGETS}.npy"),
                )
                for split in Split
            },
            tokens=made.tokens,
            fingerprint=cache.fingerprint,
            unigram_loss=cache.facts["unigram_loss"],
            facts=cache.facts["facts"],
            uncached=cache.uncached,
        )


def _find(data: Data, home: Path, *, parallel: bool) -> FoundText:
    text = find_text(data, home)
    if (len(text.suffixes) > 1) is not parallel:
        kinds = {True: "parallel text, for translation", False: "plain text, for prediction"}
        raise KdxError(
            f"corpus `{data.corpus}` is {kinds[not parallel]}; this task needs {kinds[parallel]}",
            place="data.corpus",
            allowed=corpus_names(home, parallel=parallel),
        )
    return text


def _learn(text: FoundText, data: Data, folder: Path, counts: list[Counter[str]]) -> list[Vocabulary]:
    """The vocabulary of each language, of the words of its training text; saved in `folder`."""
    found = vocabulary.learn(data, counts)
    for name, words in dict(zip(_vocabulary_names(text, data), found, strict=True)).items():
        words.save(folder / name)
    return found


def _vocabularies(text: FoundText, data: Data, folder: Path) -> list[Vocabulary]:
    names = _vocabulary_names(text, data)
    found = {name: vocabulary.load(folder / name) for name in set(names)}
    return [found[name] for name in names]


def _vocabulary_names(text: FoundText, data: Data) -> list[str]:
    if data.dictionaries is Dictionaries.SEPARATE:
        return [f"vocabulary.{suffix}.json" for suffix in text.suffixes]
    return ["vocabulary.json"] * len(text.suffixes)


class _Pairs(NamedTuple):
    sources: Counts
    """How often each source token comes."""
    targets: Counts
    left_out: int
    """Pairs."""


def _write_pairs(text: FoundText, data: Data, split: Split, words: list[Vocabulary], folder: Path) -> _Pairs:
    """One split into `folder`."""
    source, target = words
    references = []
    left_out = 0
    with (
        write_lists(folder / f"{split}.source", below=source.size) as sources,
        write_lists(folder / f"{split}.target", below=target.size) as targets,
    ):
        lines = zip(*(text.lines(split, suffix) for suffix in text.suffixes), strict=True)
        for number, (one, other) in enumerate(lines, 1):
            pair = [*source.encode(one), END], [*target.encode(other), END]
            if split is not Split.TRAIN:
                references.append(" ".join(other.split()))
                _check_length(text, data, split, number, pair)
            elif not all(1 < len(side) <= data.max_tokens for side in pair):
                left_out += 1
                continue
            sources.append(pair[0])
            targets.append(pair[1])
    (folder / f"{split}.references").write_text("\n".join(references), encoding="utf-8")
    return _Pairs(sources.counts, targets.counts, left_out)


def _check_length(text: FoundText, data: Data, split: Split, number: int, pair: tuple[list[int], list[int]]) -> None:
    """An evaluation reads every pair whole, so the longest is one that a model of any kind can read."""
    most = max(LONGEST, data.max_tokens)
    for suffix, side in zip(text.suffixes, pair, strict=True):
        if len(side) > most:
            raise KdxError(
                f"line {number:,} of {split}.{suffix} of `{data.corpus}` has {len(side):,} tokens",
                place="data.corpus",
                allowed=f"at most {most:,}, of which the last is the end token",
                hint="take the pair out, or cut it into sentences, and prepare the text anew",
            )


def _write_stream(text: FoundText, split: Split, words: Vocabulary, folder: Path) -> Counts:
    """One split into `folder`; how often each token comes."""
    with write_array(folder / f"{split}.npy", below=words.size) as ids:
        for line in text.lines(split, *text.suffixes):
            ids.extend([*words.encode(line), END])
    return ids.counts


def _text_facts(
    text: FoundText, data: Data, words: Vocabulary, counts: Mapping[Split, Counts], train: Mapping[str, int]
) -> dict[str, Any]:
    """Of the text that is predicted.

    Args:
        counts: how often each of its tokens comes.
        train: how often each word of its training text occurs.
    """
    spelling = Spelling(train)
    tokenised = "tokenised" if text.tokenised else "raw"
    facts = {**vocabulary_facts(words), "tokenisation": f"{data.vocabulary}, {tokenised} text"}
    for split in HELD_OUT:
        of_split = text_facts(text.lines(split, text.suffixes[-1]), words, counts[split], spelling)
        facts |= {f"{split}/{name}": fact for name, fact in of_split.items()}
    return facts


def _references(folder: Path, split: Split) -> tuple[str, ...]:
    if split is Split.TRAIN:
        return ()
    return tuple((folder / f"{split}.references").read_text(encoding="utf-8").split("\n"))


def _key(text: FoundText, data: Data, *settings: int) -> str:
    """Changes with whatever the tokens depend on: the text, the settings, and the code that makes the one the other."""
    library = None if data.vocabulary is axes.Vocabulary.WORD else version("tokenizers")
    wanted = [data.vocabulary, data.vocabulary_size, data.merges, data.dictionaries, data.train_lines, *settings]
    return _hash([text.identity, text.suffixes, wanted, library, _code()])


def _code() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _unigram_loss(counts: Mapping[Split, Counts]) -> float:
    train, valid = counts[Split.TRAIN] + 1, counts[Split.VALID]
    return float(-np.log(train / train.sum()) @ valid / valid.sum())
